"""A bench from its command to its folder, on real ranks; Ctrl-C keeps what finished."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from experiments import results
from experiments.bench import attempts, driver, settings, store
from experiments.bench.question import ask
from experiments.bench.schedule import schedule
from experiments.results import ResultsError
from experiments.stages import Stages

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).parents[3]
TINY = ("--ops", "Allreduce,Barrier", "--sizes", "64,4KiB")


def start(out: Path, *words: str, ranks: int = 2) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "invoke", "bench", *TINY, *words),
            *(f"--ranks={ranks}", f"--out={out}", f"--figures={out}/figures"),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A bench of two launches of one MPI, and what was printed."""
    out = tmp_path_factory.mktemp("bench") / "out"
    process = start(out, "--peers", "openmpi,pickle", "--blocks", "2", "--seed", "7")
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "[2/2] 0001-openmpi" in errors
    assert str(out) in errors
    return out, said


def test_it_prints_a_table_per_operation(measured: tuple[Path, str]) -> None:
    said = measured[1]
    for word in ("Allreduce, 2 ranks", "Barrier, 2 ranks", "64 B", "4 KiB", "openmpi", "pickle"):
        assert word in said
    assert "mpich" not in said
    assert "2 blocks: no interval below 6" in said


def test_every_sample_and_the_machine_are_stored(measured: tuple[Path, str]) -> None:
    folder = measured[0]
    bench = store.load(folder)
    assert bench.header["seed"] == 7
    assert bench.header["machine"]["cpu"]
    assert set(bench.medians["block"]) == {0, 1}
    cells = bench.medians.groupby(["block", "operation", "bytes", "form"])["contender"].agg(set)
    assert len(cells) == 2 * 3 * 2
    for (_, operation, _, form), contenders in cells.items():
        others = {"pickle"} if (operation, form) == ("allreduce", "plain") else set()
        assert contenders == {"direct", "direct-again", "mpi"} | others
    launch = results.read_launch(folder, "0000-openmpi")
    samples = results.read_samples(folder / "launches" / "0000-openmpi.npz")
    for cell in launch["cells"]:
        assert samples[cell["samples"]].shape[1] == 2
        assert (samples[cell["samples"]] > 0).all()
    assert {rank["source"] for rank in launch["ranks"]} == {"arena"}
    assert {"versions", "hashes", "machine", "datapath"} == set(launch["environment"])


def test_the_table_is_there_for_programs_too(measured: tuple[Path, str]) -> None:
    found = json.loads((measured[0] / "table.json").read_text())
    assert len(found["launches"]) == len(store.load(measured[0]).medians)
    assert {row["peer"] for row in found["peers"]} == {"openmpi", "pickle"}
    assert all(row["low"] is None for row in found["peers"]), "two blocks have no interval"
    assert found["noise"] >= 0


def test_its_figures_come_from_the_folder_alone(measured: tuple[Path, str]) -> None:
    drawn = {path.name for path in (measured[0] / "figures").iterdir()}
    assert drawn == {
        f"bench-{what}-2-ranks.{form}"
        for what in ("times", "ratios")
        for form in ("pdf", "svg", "png", "caption.txt")
    }


def test_another_bench_does_not_go_over_it(measured: tuple[Path, str]) -> None:
    process = start(measured[0])
    assert "already holds bench.json; name another --out" in process.communicate(timeout=60)[1]
    assert process.returncode == 1


def test_ordinary_arrays_more_ranks_than_cores_and_json(tmp_path: Path) -> None:
    words = ("--private", "--cadence", "streaming", "--blocks", "1", "--json")
    process = start(tmp_path / "out", "--peers", "mpich", *words, ranks=3)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    found = json.loads(said)
    assert {row["ranks"] for row in found["direct"]} == {3}
    launch = results.read_launch(tmp_path / "out", "0000-mpich")
    assert {rank["source"] for rank in launch["ranks"]} == {"numpy"}
    assert launch["launch"]["measurement"]["cadence"] == "streaming"


def slow_build(folder: Path) -> Path:
    """An installed tree of the library in which a plain Allreduce of direct takes 1 ms more."""
    shutil.copytree(ROOT / "hbmcomm", folder / "hbmcomm")
    with (folder / "hbmcomm/collectives/transports/__init__.py").open("a") as file:
        file.write(
            "\nimport time\n"
            "_class, _quick = TRANSPORTS['direct'], TRANSPORTS['direct'].Allreduce\n"
            "def _slow(*arguments):\n"
            "    time.sleep(1e-3)\n"
            "    return _quick(*arguments)\n"
            "_class.Allreduce = _slow\n"
        )
    return folder


def test_another_build_is_measured_in_the_same_ranks(tmp_path: Path) -> None:
    out, tree = tmp_path / "out", slow_build(tmp_path / "old")
    forms = ("--forms", "plain,nonblocking")
    process = start(out, "--peers", "openmpi", "--blocks", "2", "--against", str(tree), *forms)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    found = {
        (row["operation"], row["form"]): row["ratio"]
        for row in json.loads((out / "table.json").read_text())["peers"]
        if row["peer"] == "other-build"
    }
    assert found.pop(("allreduce", "plain")) > 50
    assert set(found) == {
        *(("allreduce", "nonblocking"), ("barrier", "plain"), ("barrier", "nonblocking")),
    }
    assert all(0.3 < ratio < 3 for ratio in found.values())
    assert "direct old" in said
    assert "direct old over direct, all launches: median" in said
    assert store.load(out).other_build == "direct old"


def test_a_tree_without_the_library_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    process = start(tmp_path / "out", "--against", str(tmp_path))
    assert "holds no package hbmcomm" in process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert not (tmp_path / "out" / "bench.json").exists()


@pytest.mark.parametrize("arrays", ["arena", "private"])
def test_another_build_has_arrays_of_its_own_arena(
    mpirun: Callable[..., Any], tmp_path: Path, arrays: str
) -> None:
    program = Path(__file__).parent / "ranks" / "own_arena.py"
    assert mpirun(program, 2, str(tmp_path), arrays).output.count("ok") == 2


SETTINGS = {
    "crashing": {"SABOTAGE": "crash"},
    "hanging": {"SABOTAGE": "hang"},
    "unstartable": {"SABOTAGE": "start"},
}


def test_settings_that_hang_crash_or_do_not_start_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "_TABLE", {"openmpi": SETTINGS})
    monkeypatch.setattr(attempts, "PATIENCE", 12.0)
    monkeypatch.setattr(driver, "PROGRAM", "tests.experiments.bench.ranks.crashing")
    monkeypatch.chdir(ROOT)
    asked = ask(2, operations="Bcast", sizes="64,1KiB", peers="openmpi", tuned=True, blocks=2)
    told = io.StringIO()
    driver.run(asked, tmp_path / "out", 3, Stages(Console(file=told)))
    bench = driver.summarise(tmp_path / "out")
    notes = "\n".join(bench.notes)
    call = "openmpi ({}), 2 ranks: plain Bcast of 64 bytes left out once it failed: {}"
    assert call.format("hanging", "stood still for 12 s") in notes
    assert call.format("crashing", "exit code") in notes
    assert "openmpi (unstartable), 2 ranks: given up: exit code 3" in notes
    assert "6 of 8 planned launches are finished" in notes
    cells = bench.medians[bench.medians["form"] == "plain"]
    cells = cells.groupby(["setting", "block", "bytes"])["contender"].agg(set)
    assert len(cells) == 3 * 2 * 2
    for (setting, _, size), contenders in cells.items():
        broken = setting != "default" and size == 64
        assert contenders == {"direct", "direct-again"} | (set() if broken else {"mpi"})
    logs = {path.name for path in (tmp_path / "out" / "logs").iterdir()}
    assert sum("hanging.failed-1.log" in name for name in logs) == 1, "later blocks leave it out"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_and_shows_what_finished(tmp_path: Path, number: int) -> None:
    out, shm = tmp_path / "out", set(Path("/dev/shm").iterdir())
    process = start(out, "--peers", "openmpi", "--blocks", "50")
    try:
        deadline = time.monotonic() + 60
        while len(results.finished(out)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, number)  # as a terminal does
        said, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Allreduce, 2 ranks" in said
    assert "of 50 planned launches are finished" in said
    assert "bench: interrupted" in errors
    assert "Traceback" not in errors
    assert not (out / "incoming").exists()
    assert len(store.load(out).medians["block"].unique()) == len(results.finished(out)) >= 2
    assert set(Path("/dev/shm").iterdir()) <= shm


def test_a_wrong_result_of_ours_voids_the_launch(
    mpirun: Callable[..., Any], tmp_path: Path
) -> None:
    launch = schedule(ask(2, operations="Allreduce", sizes="64", peers="openmpi"), 1)[0]
    (tmp_path / "launch.json").write_text(json.dumps(launch.to_dict()))
    program = Path(__file__).parent / "ranks" / "sabotaged.py"
    said = mpirun(program, 2, str(tmp_path), "direct", code=1).output
    assert "allreduce of 64 bytes left 1 wrong elements in iteration" in said
    assert "Traceback" not in said
    assert not (tmp_path / "result.json").exists()


def test_a_wrong_result_of_a_peer_is_told_and_not_counted(
    mpirun: Callable[..., Any], tmp_path: Path
) -> None:
    launch = schedule(ask(2, operations="Allreduce", sizes="64", peers="openmpi,pickle"), 1)[0]
    folder = tmp_path / "bench"
    store.create(folder, {"schedule": [launch.name], "missing": [], "machine": {}, "question": {}})
    with results.incoming(folder, launch.name) as place:
        (place / "launch.json").write_text(json.dumps(launch.to_dict()))
        program = Path(__file__).parent / "ranks" / "sabotaged.py"
        mpirun(program, 2, str(place), "pickle")
        results.accept(folder, launch.name, place)
    bench = driver.summarise(folder)
    assert "pickle beside openmpi: plain Allreduce of 64 bytes left wrong data, not counted" in (
        bench.notes
    )
    assert set(bench.medians["contender"]) == {"direct", "direct-again", "mpi"}
    assert np.isfinite(bench.medians["bound_s"]).all()


def test_a_folder_without_a_finished_launch_says_what_to_do(tmp_path: Path) -> None:
    store.create(tmp_path, {"schedule": ["0000-impi"], "missing": []})
    with pytest.raises(ResultsError, match="no finished launch"):
        store.load(tmp_path)
