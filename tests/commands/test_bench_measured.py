"""A bench from its command to its folder, on real ranks; Ctrl-C keeps what finished."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from commands import bench as command
from experiments.console import Stages
from experiments.driver import campaign, together
from experiments.driver.campaign_file import Request
from experiments.environments import host
from experiments.model import mpi_settings
from experiments.model.experiment import Experiment
from experiments.model.launch import Launch
from experiments.results import store
from experiments.results.store import ResultsError
from experiments.schedule.blocks import schedule
from experiments.schedule.turns import FEWEST_ROUNDS
from tests.awaiting import wait_for
from tests.benches import ask
from tests.left import nothing_left
from tests.sharing import MadeOnce
from tests.stored_launches import begin

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).parents[2]
SABOTAGED = Path(__file__).parent / "ranks" / "sabotaged.py"
TINY = ("--ops", "Allreduce,Barrier", "--sizes", "64,4KiB")


def start(out: Path, *words: str, ranks: int = 2) -> "subprocess.Popen[str]":
    folders = (f"--out={out}", f"--figures={out}/figures")
    return subprocess.Popen(
        [sys.executable, "-m", "invoke", "bench", *TINY, *words, f"--ranks={ranks}", *folders],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def measured(made_once: MadeOnce) -> tuple[Path, str]:
    """A bench of two launches of one MPI, and what was printed."""

    def make(folder: Path) -> None:
        out = folder / "out"
        process = start(out, "--peers", "openmpi,pickle", "--blocks", "2", "--seed", "7")
        printed, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert "2 launches in 2 blocks: up to about " in errors
        assert "[2/2] 0001-openmpi" in errors
        assert str(out) in errors
        (folder / "printed").write_text(printed, encoding="utf-8")

    folder = made_once("bench", make)
    return folder / "out", (folder / "printed").read_text(encoding="utf-8")


def test_it_prints_a_table_per_operation(measured: tuple[Path, str]) -> None:
    printed = measured[1]
    for word in ("Allreduce, 2 ranks, plain calls", "Barrier, 2 ranks, persistent calls"):
        assert word in printed
    for word in ("64 B", "4 KiB", "openmpi", "pickle"):
        assert word in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "mpich" not in printed
    assert "2 blocks: no interval below 6" in printed


def test_every_sample_and_the_machine_are_stored(measured: tuple[Path, str]) -> None:
    folder = measured[0]
    bench = command.read(folder)
    assert bench.header["seed"] == 7
    assert bench.header["machine"]["cpu"]
    assert set(bench.cells["block"]) == {0, 1}
    cells = bench.cells.groupby(["block", "operation", "bytes", "form"])["transport"].agg(set)
    assert len(cells) == 2 * 3 * 2
    for (_, operation, _, form), contenders in cells.items():
        others = {"pickle"} if (operation, form) == ("allreduce", "plain") else set()
        assert contenders == {"direct", "direct-again", "mpi"} | others
    turns = bench.cells.groupby(["block", "contest"])["turns"].agg(
        lambda series: set(map(len, series))
    )
    assert all(len(counts) == 1 and min(counts) >= FEWEST_ROUNDS for counts in turns), (
        "in turns with each other"
    )
    launch, samples = store.read_launch(folder, "0000-openmpi")
    for cell in launch.cells:
        assert samples[cell.samples].shape[1] == 2
        assert (samples[cell.samples] > 0).all()
        assert cell.barrier.endswith("of a copy of the library that serves nothing else")
    assert {pool.source for rank in launch.ranks for pool in rank.pools} == {"arena"}


def test_the_table_is_there_for_programs_too(measured: tuple[Path, str]) -> None:
    table = json.loads((measured[0] / "table.json").read_text())
    assert len(table["launches"]) == len(command.read(measured[0]).cells)
    assert {row["peer"] for row in table["peers"]} == {"openmpi", "pickle"}
    assert all(row["low"] is None for row in table["peers"]), "two blocks have no interval"
    assert table["noise"] is None, "fewer cells than a noise floor is taken from"


def test_a_stored_bench_is_printed_again_and_a_campaign_is_not(
    measured: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command.show(command.read(measured[0]), as_json=False)
    assert capsys.readouterr().out == measured[1]
    store.create(tmp_path / "quick", {"name": "quick"})
    with pytest.raises(ResultsError):
        command.read(tmp_path / "quick")


def test_its_figures_come_from_the_folder_alone(measured: tuple[Path, str]) -> None:
    drawn = {path.name for path in (measured[0] / "figures").iterdir()}
    assert drawn == {
        f"bench-{what}-2-ranks.{form}"
        for what in ("times", "ratios")
        for form in ("pdf", "svg", "png", "caption.txt")
    }


@pytest.mark.rare
def test_ordinary_arrays_more_ranks_than_cores_and_json(tmp_path: Path) -> None:
    words = ("--private", "--cadence", "streaming", "--blocks", "1", "--json")
    process = start(tmp_path / "out", "--peers", "mpich", *words, ranks=3)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    table = json.loads(printed)
    assert {row["ranks"] for row in table["direct"]} == {3}
    launch = store.read_result(tmp_path / "out", "0000-mpich")
    assert {pool.source for rank in launch.ranks for pool in rank.pools} == {"numpy"}
    assert launch.launch.measurement.cadence == "streaming"


def slow_build(folder: Path) -> Path:
    """An installed tree of the library in which a plain Allreduce of direct takes 1 ms more."""
    shutil.copytree(ROOT / "hbmcomm", folder / "hbmcomm")
    with (folder / "hbmcomm/options.py").open("a") as file:
        file.write(
            "\nimport time\n"
            "_class, _quick = TRANSPORTS['direct'], TRANSPORTS['direct'].Allreduce\n"
            "def _slow(*arguments):\n"
            "    time.sleep(1e-3)\n"
            "    return _quick(*arguments)\n"
            "_class.Allreduce = _slow\n"
        )
    return folder


@pytest.mark.rare
def test_another_build_is_measured_in_the_same_ranks(tmp_path: Path) -> None:
    out, tree = tmp_path / "out", slow_build(tmp_path / "old")
    forms = ("--forms", "plain,nonblocking")
    process = start(out, "--peers", "openmpi", "--blocks", "2", "--against", str(tree), *forms)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    ratios = {
        (row["operation"], row["form"]): row["ratio"]
        for row in json.loads((out / "table.json").read_text())["peers"]
        if row["peer"] == "other-build"
    }
    assert ratios.pop(("allreduce", "plain")) > 50
    assert set(ratios) == {
        *(("allreduce", "nonblocking"), ("barrier", "plain"), ("barrier", "nonblocking")),
    }
    assert all(0.3 < ratio < 3 for ratio in ratios.values())
    assert "Other build: direct old, over direct in all launches: median" in " ".join(
        printed.split()
    )


@pytest.mark.alone
@pytest.mark.rare
def test_settings_that_hang_crash_or_do_not_start_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = {"crashing": "crash", "hanging": "hang", "unstartable": "start"}
    settings = {name: {"SABOTAGE": how} for name, how in failing.items()}
    monkeypatch.setattr(mpi_settings, "_TABLE", {"openmpi": settings})
    monkeypatch.setattr(together, "SETTING_PATIENCE", 30.0)
    monkeypatch.setattr(host, "PROGRAM", "tests.commands.ranks.sabotaged")
    monkeypatch.chdir(ROOT)
    asked = ask(2, operations="Bcast", sizes="64,1KiB", peers="openmpi", tuned=True, blocks=2)
    shown, out = io.StringIO(), tmp_path / "out"
    campaign.run(asked, Request(out, seed=3), Stages(Console(file=shown)))
    bench = command.read(out)
    notes = "\n".join(bench.warnings)
    call = "openmpi-{}, 2 ranks: plain Bcast of 64 bytes left out once it failed: {}"
    assert call.format("hanging", "does not answer") in notes
    assert call.format("crashing", "exit code") in notes
    assert "openmpi-unstartable with openmpi, 2 ranks, failed once: exit code 3" in notes
    assert "6 of 8 planned launches are finished" in notes
    cells = bench.cells[bench.cells["form"] == "plain"]
    cells = cells.groupby(["setting", "block", "bytes"])["transport"].agg(set)
    assert len(cells) == 3 * 2 * 2
    for (setting, _, size), contenders in cells.items():
        broken = setting != "default" and size == 64
        assert contenders == {"direct", "direct-again"} | (set() if broken else {"mpi"})
    logs = {path.name for path in (out / "logs").iterdir()}
    assert sum("hanging.failed-1.log" in name for name in logs) == 1, "later blocks leave it out"


@pytest.mark.alone
@pytest.mark.rare
def test_an_interrupt_keeps_and_shows_what_finished(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with nothing_left():
        process = start(out, "--peers", "openmpi", "--blocks", "50")
        try:
            wait_for(lambda: len(store.finished(out)) >= 2, "2 finished launches", 60)
            os.killpg(process.pid, signal.SIGTERM)  # test_interruption.py has SIGINT
            printed, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert "bench: interrupted" in errors
    assert "Traceback" not in errors
    assert not (out / "incoming").exists()
    assert "Allreduce, 2 ranks" in printed
    assert "of 50 planned launches are finished" in printed
    assert len(command.read(out).cells["block"].unique()) == len(store.finished(out)) >= 2


def test_a_wrong_result_of_ours_voids_the_launch(
    mpirun: Callable[..., Any], tmp_path: Path
) -> None:
    launch = launch_of("openmpi")
    (tmp_path / "launch.json").write_text(json.dumps(launch.to_dict()))
    printed = mpirun(SABOTAGED, 2, str(tmp_path), env={"SABOTAGE": "plain"}, code=1).output
    assert "allreduce of 64 bytes left 1 wrong elements in iteration" in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "result.json").exists()


def test_a_wrong_result_of_a_peer_is_reported_and_not_counted(
    mpirun: Callable[..., Any], tmp_path: Path
) -> None:
    launch, folder = launch_of("openmpi,pickle"), tmp_path / "bench"
    planned = [{"block": 0, "launches": [launch.name]}]
    begin(folder, asked("openmpi,pickle"), schedule=planned, machine={})
    with store.incoming(folder, launch.name) as place:
        (place / "launch.json").write_text(json.dumps(launch.to_dict()))
        mpirun(SABOTAGED, 2, str(place), env={"SABOTAGE": "pickled"})
        store.accept(folder, launch.name, place)
    bench = command.read(folder)
    assert "pickle beside openmpi: plain Allreduce of 64 bytes left wrong data, not counted" in (
        bench.warnings
    )
    assert set(bench.cells["transport"]) == {"direct", "direct-again", "mpi"}
    assert np.isfinite(bench.cells["bound_s"]).all()


def asked(peers: str) -> Experiment:
    return ask(2, operations="Allreduce", sizes="64", peers=peers)


def launch_of(peers: str) -> Launch:
    """The first launch of a bench of one cell."""
    return schedule(asked(peers), 1)[0].launches[0]
