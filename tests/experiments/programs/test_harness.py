"""The MPI program: what it measures, checks, proves and refuses, on real ranks."""

import functools
import importlib.util
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from experiments.machine import cgroup, facts
from experiments.model.launch import OPERATIONS, TRANSPORTS, Cell, Launch, Measurement
from experiments.programs.harness import measure
from experiments.results import store
from experiments.schedule.turns import Answer, Order
from tests import launched
from tests.starting import Start

pytestmark = pytest.mark.ranks

Harness = Callable[..., Any]
Measured = tuple[Path, dict[str, Any]]

HARNESS = "experiments.programs.harness"
RANKS = Path(__file__).parents[1] / "ranks"
TORCH = importlib.util.find_spec("torch") is not None
QUICK = Measurement(time_cap=0.02, min_iterations=6, max_iterations=50)
LAUNCH = replace(
    launched.LAUNCH,
    measurement=QUICK,
    cells=tuple(
        Cell(operation, transport, "regular", "local", size)
        for operation in OPERATIONS
        for transport in TRANSPORTS
        for size in (4, 1024, 100_000)
    ),
)


def run(
    start: Start,
    folder: Path,
    launch: Launch,
    program: str | Path = HARNESS,
    ranks: int = 0,
    fails: bool = False,
    **environment: str,
) -> Any:
    """The result of the harness, or of a rank program around it; if it fails, what it printed."""
    (folder / "launch.json").write_text(json.dumps(launch.to_dict()))
    count = ranks or launch.ranks
    ended = start(folder, program, count, str(folder), env=environment, code=None)
    stored = folder / "result.json"
    assert bool(ended.code) == (not stored.exists()) == fails, ended.output
    return ended.output if fails else json.loads(stored.read_text())


@pytest.fixture
def harness(mpirun_in: Start, tmp_path: Path) -> Harness:
    """harness(launch, ...): run() in the folder of the test."""
    return functools.partial(run, mpirun_in, tmp_path)


@pytest.fixture(scope="module")
def measured(mpirun_in: Start, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Where the harness ran over LAUNCH, and its result."""
    folder = tmp_path_factory.mktemp("measured")
    return folder, run(mpirun_in, folder, LAUNCH)


@pytest.fixture
def result(measured: Measured) -> dict[str, Any]:
    return measured[1]


def samples_of(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "samples.npz") as stored:
        return {key: stored[key] for key in stored.files}


RARE = [pytest.param(*case, marks=pytest.mark.rare) for case in ((1, "float64"), (3, "int64"))]


@pytest.mark.parametrize(("ranks", "dtype"), [(2, "float32"), (3, "int32"), *RARE])
def test_every_operation_is_right_in_every_dtype_and_timed_on_every_rank(
    measured: Measured, harness: Harness, tmp_path: Path, ranks: int, dtype: str
) -> None:
    (folder, result), larger = measured, 1
    if dtype != LAUNCH.dtype:
        larger = 8
        cells = tuple(replace(cell, bytes=larger * cell.bytes) for cell in LAUNCH.cells)
        folder, result = tmp_path, harness(replace(LAUNCH, ranks=ranks, dtype=dtype, cells=cells))
    samples = samples_of(folder)
    copies = [cell["bytes"] // larger for cell in result["cells"] if cell["operation"] == "copy"]
    assert sorted(copies) == [4, 1024, 100_000], "which bound all others of their size"
    assert len(result["cells"]) == len(copies) + len(LAUNCH.cells)
    for cell in result["cells"]:
        seconds = samples[cell["samples"]]
        assert seconds.shape[1] == ranks
        assert (seconds > 0).all()
        timed = len(seconds) - cell["warmup"]
        assert cell["warmup"] >= 10
        assert QUICK.min_iterations <= timed <= QUICK.max_iterations
        assert cell["warmup"] >= timed / 10


def test_no_rank_leaves_an_allreduce_before_the_last_one_has_begun(measured: Measured) -> None:
    """By begin times of all ranks: they read one clock."""
    folder, result = measured
    samples = samples_of(folder)
    for cell in result["cells"]:
        seconds, begins = samples[cell["samples"]], samples[cell["begins"]]
        assert begins.shape == seconds.shape and (begins >= 0).all()
        assert len(cell["began_ns"]) == -(-(len(seconds) - cell["warmup"]) // cell["turn"])
        if cell["operation"] == "allreduce":
            ends = begins + cell["group"] * seconds
            assert (ends.min(axis=1) >= begins.max(axis=1) - 1e-8).all()


def test_an_mpi_that_tunes_itself_is_tuned_first(harness: Harness, tmp_path: Path) -> None:
    cells = tuple(Cell("allreduce", name, "regular", "local", 1024) for name in ("direct", "mpi"))
    result = harness(replace(LAUNCH, mpi="impi", setting="autotuned", cells=cells))
    samples = samples_of(tmp_path)
    for cell in result["cells"]:
        timed = len(samples[cell["samples"]]) - cell["warmup"]
        turns = -(-timed // cell["turn"])
        untimed = cell["warmup"] - turns * max(2, -(-cell["turn"] // 10))
        assert untimed == (64 if cell["transport"] == "mpi" else 10)


def without_sizes(topology: dict[str, Any]) -> dict[str, Any]:
    """A virtual machine may give memory back while tests run."""
    assert all(node["total_bytes"] > 0 for node in topology["nodes"])
    return topology | {"nodes": [node | {"total_bytes": 0} for node in topology["nodes"]]}


def test_where_every_page_and_rank_was_is_recorded(result: dict[str, Any]) -> None:
    assert [rank["rank"] for rank in result["ranks"]] == [0, 1]
    allowed = os.sched_getaffinity(0)
    for rank in result["ranks"]:
        assert rank["cpu"] in allowed
        (pool,) = rank["pools"]
        assert sum(pool["placement"].values()) == pool["bytes"] >= 2 * 100_000
        assert pool["placement_method"] in ("move_pages", "get_mempolicy", "numa_maps")
        counted = rank["disturbance"]
        assert counted["own"] > 0 and 0 < counted["seconds"] < result["seconds"]
        assert counted["voluntary"] >= 0 and counted["involuntary"] >= 0
        assert len(counted["load"]) == 2
    assert without_sizes(result["environment"]["topology"]) == without_sizes(facts.nodes())
    assert result["environment"]["machine"]["emulated"] == "no"


def test_groups_of_torch_are_measured_or_skipped_with_the_reason(harness: Harness) -> None:
    if not TORCH:
        groups = ("direct", "gloo")
        cells = tuple(Cell("allreduce", group, "regular", "local", 1024) for group in groups)
        result = harness(replace(LAUNCH, cells=cells))
        (skipped,) = [cell for cell in result["cells"] if "skipped" in cell]
        assert skipped["skipped"] == "gloo is left out: torch cannot be imported"
        return
    cells = tuple(Cell("allreduce", group, "regular", "local", 1024) for group in ("gloo", "torch"))
    cells += (Cell("tensor_push", "gloo-send", "regular", "local", 1024),)  # over the same gloo
    result = harness(replace(LAUNCH, cells=cells))
    measured = [cell["transport"] for cell in result["cells"] if cell["transport"] != "none"]
    assert measured == ["gloo", "torch", "gloo-send"]
    assert not any("skipped" in cell for cell in result["cells"])
    assert result["environment"]["versions"]["torch"] == metadata.version("torch")


@pytest.mark.parametrize("cadence", ["streaming", pytest.param("isolated", marks=pytest.mark.rare)])
def test_private_arrays_are_cells_beside_the_arena(harness: Harness, cadence: str) -> None:
    """With buffers that leave the cache, too."""
    rotating = replace(QUICK, cache="rotating", cadence=cadence)
    cells = tuple(
        Cell("allreduce", transport, "regular", "local", 1024, buffers)
        for transport in ("mpi", "pickle", "direct")  # the one that needs an arena comes last
        for buffers in ("arena", "private")
    )
    result = harness(replace(LAUNCH, measurement=rotating, cells=cells))
    assert Counter(cell["operation"] for cell in result["cells"]) == {"copy": 2, "allreduce": 6}
    assert not any("skipped" in cell for cell in result["cells"])
    for rank in result["ranks"]:
        sources = {pool["buffers"]: pool["source"] for pool in rank["pools"]}
        assert sources["arena"] == "arena"
        assert sources["private"] in ("memkind", "mmap")


def test_without_shared_memory_what_needs_it_is_skipped_with_the_reason(harness: Harness) -> None:
    asked = tuple(cell for cell in LAUNCH.cells if cell.bytes == 1024)
    cells = harness(replace(LAUNCH, cells=asked), RANKS / "unshared.py")["cells"]
    skipped = [cell for cell in cells if "skipped" in cell]
    assert all("the ranks cannot share memory" in cell["skipped"] for cell in skipped)
    need = {"direct", "hierarchical"}
    assert {cell["transport"] for cell in skipped} == need
    assert len(skipped) == sum(cell.transport in need for cell in asked)
    assert sum(cell["operation"] == "copy" for cell in cells) == 1


def test_the_data_path_is_recorded_as_tried(result: dict[str, Any]) -> None:
    path = result["environment"]["datapath"]
    assert path["cma"].split()[0] in ("works", "refused")
    assert path["kcmp"].split()[0] in ("works", "refused", "not")
    assert path["memfd"] == "works"
    assert {"seccomp", "capabilities_effective", "shm_bytes", "mems_allowed"} <= set(path)


def test_the_libraries_that_are_loaded_are_hashed(result: dict[str, Any]) -> None:
    hashes = result["environment"]["hashes"]
    assert {"hbmcomm", "experiments", "core", "numpy", "libmpi", "mpi4py"} <= set(hashes)
    assert all(len(digest) == 16 and int(digest, 16) >= 0 for digest in hashes.values())


def test_memory_that_this_machine_has_not_is_skipped_with_the_reason(harness: Harness) -> None:
    if len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) > 1:
        pytest.skip("this machine has the memory that the test expects to miss")
    asked, memory = LAUNCH.cells[:3], (("hbw", "local"), ("regular", "remote"))
    lacking = [replace(cell, kind=kind, locality=at) for kind, at in memory for cell in asked]
    result = harness(replace(LAUNCH, cells=(*lacking, *asked)))
    for kind, locality in memory:
        skipped = [
            cell
            for cell in result["cells"]
            if "skipped" in cell and (cell["kind"], cell["locality"]) == (kind, locality)
        ]
        assert len(skipped) == len(asked) + len({cell.bytes for cell in asked})
        assert all(kind in cell["skipped"] for cell in skipped)


def test_buffers_that_do_not_fit_are_refused_before_they_are_touched(harness: Harness) -> None:
    huge = tuple(replace(cell, bytes=2**40) for cell in LAUNCH.cells[:1])
    assert "ask for smaller --sizes" in harness(replace(LAUNCH, cells=huge), fails=True)


def test_one_kind_has_buffers_at_a_time(harness: Harness) -> None:
    cells = tuple(
        Cell("allreduce", transport, kind, "local", 2**24)
        for transport in ("direct", "mpi")
        for kind in ("regular", "hbw")
    )
    asked, program = replace(LAUNCH, cells=cells), RANKS / "one_kind_at_a_time.py"
    result = harness(asked, program, MEMKIND_HBW_NODES="0")
    kinds = [cell["kind"] for cell in result["cells"]]
    assert kinds == ["regular"] * 3 + ["hbw"] * 3
    assert [cell["emulated"] for cell in result["cells"]] == [False] * 3 + [True] * 3
    for rank in result["ranks"]:
        assert [pool["kind"] for pool in rank["pools"]] == ["regular", "hbw"]
        assert all(pool["placement_after"] == pool["placement"] for pool in rank["pools"])


def test_its_progress_names_cells_and_operations(measured: Measured) -> None:
    folder, result = measured
    cells, total, operations = map(int, (folder / "progress").read_text().split())
    assert 0 < cells <= total == len(result["cells"])
    assert operations >= 10 * cells


def test_a_launch_started_with_another_number_of_ranks_is_refused(harness: Harness) -> None:
    printed = harness(LAUNCH, ranks=1, fails=True)
    assert "asks for 2 ranks; found 1 in COMM_WORLD" in printed
    assert "through a PMI that openmpi does not have" in printed


def test_a_wrong_result_voids_the_launch(harness: Harness) -> None:
    asked = replace(LAUNCH, cells=(Cell("allreduce", "mpi", "regular", "local", 1024),))
    program = RANKS.parents[1] / "commands/ranks/sabotaged.py"
    printed = harness(asked, program, fails=True, SABOTAGE="plain")
    for word in ("allreduce of", "wrong elements", "WrongResult"):
        assert word in printed
    assert "Traceback" not in printed


def test_a_defect_on_any_rank_is_told_with_its_traceback(harness: Harness) -> None:
    printed = harness(LAUNCH, RANKS / "defective.py", fails=True)
    for word in ("Traceback", "in choose_cpu", "rank 1: ZeroDivisionError: "):
        assert word in printed


def test_what_it_writes_is_what_results_takes_in(measured: Measured, tmp_path: Path) -> None:
    campaign, place = tmp_path / "campaign", tmp_path / LAUNCH.name
    shutil.copytree(measured[0], place)
    store.create(campaign, {"name": "test"})
    store.accept(campaign, LAUNCH.name, place)
    assert store.finished(campaign) == {LAUNCH.name}


def test_what_runs_before_the_first_order_is_not_counted(tmp_path: Path) -> None:
    done: list[str] = []

    def counters() -> cgroup.Counters:
        done.append("counted")
        return cgroup.counters(min(os.sched_getaffinity(0)))

    def carry_out(order: Order) -> Answer:
        done.append("ordered")
        return Answer()

    measure(MPI.COMM_SELF, LAUNCH, carry_out, tmp_path, counters)
    assert done == ["counted", *["ordered"] * len(LAUNCH.plan), "counted"]
    none = replace(LAUNCH, cells=())
    record = measure(MPI.COMM_SELF, none, carry_out, tmp_path, counters)
    assert record["disturbance"]["seconds"] == 0
