"""Real programs that are held at the gate, counted, stopped and continued."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from experiments.environments.mpiexec import mpiexec
from experiments.jobs.gate import Gate
from experiments.jobs.slices import Run, RunLost
from experiments.machine import loaded
from experiments.model.program import KEEPER, LARGE, LIBRARY, SOCKET, CallCount, Timed
from experiments.processes import executables, scratch, tracking
from experiments.provision import gate_build, mpi_wheels, passthrough
from tests.experiments.running import running

pytestmark = pytest.mark.alone  # ranks that spin, and are stopped and continued

MPIS = ("openmpi", "mpich", "impi")
PATIENCE = 60.0
TICKS = """
import subprocess, sys, time
words = [sys.executable, __file__, sys.argv[1] + ".helper"]
if "helper" in sys.argv:
    subprocess.Popen(words)
if "mpi" in sys.argv:
    from mpi4py import MPI
if "daemon" in sys.argv:
    subprocess.run(["setsid", "--fork", "env", "-i", *words])
while True:
    with open(sys.argv[1], "a") as file:
        file.write(".")
    time.sleep(0.001)
"""
"""Writes into a file, and has a helper or a daemon that does the same into another one."""

Started = Callable[..., contextlib.AbstractContextManager[Run]]


@pytest.fixture
def started(tmp_path: Path) -> Started:
    """started(words, library=LIBRARY, environment={}, before=()): a run, held before its start.

    `before` are the words of a command that starts it.
    """
    compiled = gate_build.ensure()

    @contextlib.contextmanager
    def run(
        words: list[str],
        library: str = LIBRARY,
        environment: dict[str, str] | None = None,
        before: tuple[str, ...] = (),
    ) -> Iterator[Run]:
        others = tracking.segments()
        with (
            executables.adopting_orphans(),
            scratch.folder(scratch.SHORT, "hbmcomm-test-") as folder,
            Gate(folder, ()) as gate,
        ):
            gate_build.put(folder, compiled)
            kept = [*before, folder / KEEPER, folder / SOCKET, folder / library, tmp_path, "--"]
            with (tmp_path / "log").open("wb") as log:
                process = subprocess.Popen(
                    [str(word) for word in (*kept, *words)],
                    env={**os.environ, **(environment or {})},
                    stdout=log,
                    stderr=log,
                )
            try:
                alive = Run(gate, process.poll, adopted=not before)
                alive.await_keeper(PATIENCE)
                yield alive
            finally:
                for pid in alive.pids:
                    subprocess.run(["kill", "-KILL", str(pid)], capture_output=True, check=False)
                process.kill()
                process.wait()
                alive.end()
                tracking.remove_job_folder(process.pid)
                tracking.remove_segments(others)

    return run


def of_two(mpi: str, *program: str) -> tuple[list[str], dict[str, str]]:
    """The command that starts two ranks of an MPI, and its variables."""
    return mpiexec(mpi, mpi_wheels.ensure(mpi, print), 2, passthrough.cores(), program)


def ready(run: Run, mpi: str = "openmpi") -> set[str]:
    """Hold a run of an MPI program behind MPI_Init; what libraries it has."""
    run.make_ready(Timed.RANKS, PATIENCE)
    for rank in run.gate.ranks.values():
        assert loaded.has_large_counts(rank.pid, rank.library) == (mpi != "openmpi")
    return set(loaded.loaded(run.pids))


def to_the_end(run: Run) -> dict[str, CallCount]:
    """Let a run that is ready work to its end; its calls."""
    while not run.work(0.05):
        pass
    counts = run.counts()
    assert run.finish(PATIENCE) == 0
    return counts


def bands(counts: dict[str, CallCount]) -> dict[str, str]:
    """How many calls of each function there were, a digit for each range of sizes."""
    return {name: "".join(map(str, count.calls)).rstrip("0") for name, count in counts.items()}


@pytest.mark.ranks
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_calls_of_c_are_counted_by_size(started: Started, tmp_path: Path, mpi: str) -> None:
    program = tmp_path / "calls"
    compiler = mpi_wheels.ensure(mpi, print) / "bin/mpicc"
    source = Path(__file__).with_name("calls.c")
    subprocess.run([compiler, "-O1", source, "-o", program], check=True)
    words, variables = of_two(mpi, str(program))
    with started(words, environment=variables) as run:
        assert {"C library", "MPI"} <= ready(run, mpi)
        counts = to_the_end(run)
    barrier = counts.pop("Barrier")  # one rank may still be in it when the other one is at its end
    assert barrier.calls[0] in (1, 2)
    assert bands(counts) == {
        "Allreduce": "06002",
        "Bcast": "000002",
        "Gather": "11",  # the root's own part has no size
        "Scatterv": "11",
        "Alltoallv": "2",
        "Sendrecv": "02",
        "Irecv": "002",
        "Isend": "002",
        "Waitall": "2",
        "Ibarrier": "2",
        "Wait": "2",
    }
    assert counts["Allreduce"].bytes == 2 * (3 * 4 + 2**20)
    assert counts["Bcast"].bytes == 2 * 2**21
    assert all(any(count.nanoseconds) for count in counts.values())


@pytest.mark.ranks
@pytest.mark.parametrize("mpi", MPIS)
def test_the_calls_of_mpi4py_are_counted(started: Started, tmp_path: Path, mpi: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from mpi4py import MPI; import numpy as np; x = np.ones(1000); y = x.copy()\n"
        "for _ in range(7): MPI.COMM_WORLD.Allreduce(x, y)\n"
        "assert y[0] == 2; MPI.COMM_WORLD.Barrier()\n"
    )
    python = mpi_wheels.ensure(mpi, print) / "bin/python"
    words, variables = of_two(mpi, str(python), str(program))
    with started(words, LIBRARY if mpi == "openmpi" else LARGE, variables) as run:
        assert {"C library", "MPI", "Python"} <= ready(run, mpi)
        counts = to_the_end(run)
    assert counts["Allreduce"].calls == [0, 0, 0, 14, 0, 0]
    assert counts["Barrier"].calls[0] in (1, 2)  # one rank may still be in it at the end
    assert run.readied > 0
    assert run.seconds > 0


@pytest.mark.ranks
def test_time_in_a_call_does_not_count_while_stopped(started: Started, tmp_path: Path) -> None:
    program = tmp_path / "late.py"
    program.write_text(
        "from mpi4py import MPI; import time\n"
        "if MPI.COMM_WORLD.rank: time.sleep(0.5)\n"
        "MPI.COMM_WORLD.Barrier()\n"
    )
    words, variables = of_two("openmpi", sys.executable, str(program))
    with started(words, environment=variables) as run:
        run.make_ready(Timed.RANKS, PATIENCE)
        assert not run.work(0.1)
        time.sleep(1.0)  # the sleep of rank 1 goes on meanwhile: time does
        while not run.work(0.1):
            pass
        (barrier,) = [count for name, count in run.counts().items() if name == "Barrier"]
        run.finish(PATIENCE)
    assert sum(barrier.nanoseconds) / 1e9 < 0.9
    assert run.seconds < 0.9


def work_in_slices_alone(run: Run, files: Sequence[Path]) -> None:
    """Programs that write all the time: their files grow in slices of the run, and only then."""
    deadline = time.monotonic() + PATIENCE
    while not all(path.exists() for path in files) and time.monotonic() < deadline:
        assert not run.work(0.1)
    for _ in range(5):
        before = [path.stat().st_size for path in files]
        time.sleep(0.1)
        assert [path.stat().st_size for path in files] == before
        assert not run.work(0.2)
        assert all(path.stat().st_size > size for path, size in zip(files, before, strict=True))


@pytest.mark.parametrize("other", ["helper", "daemon"])
def test_a_run_and_children_work_in_slices(started: Started, tmp_path: Path, other: str) -> None:
    program, own = tmp_path / "ticks.py", tmp_path / "own"
    program.write_text(TICKS)
    both = (own, Path(f"{own}.helper"))
    with started([sys.executable, str(program), str(own), other]) as run:
        run.make_ready(Timed.WHOLE, PATIENCE)
        assert not own.exists()
        work_in_slices_alone(run, both)
    assert not running(f"{own}.helper")


@pytest.mark.ranks
def test_a_daemon_of_a_rank_is_stopped_with_it(started: Started, tmp_path: Path) -> None:
    """As in a container, of which the launcher is the first process."""
    program, own = tmp_path / "ticks.py", tmp_path / "own"
    program.write_text(TICKS)
    both = (own, Path(f"{own}.helper"))
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid():
        apart.append("--map-root-user")
    words, variables = of_two("openmpi", sys.executable, str(program), str(own), "daemon", "mpi")
    variables["TMPDIR"] = str(tmp_path)  # its folder there has the name of a PID, which is 1
    with started(words, environment=variables, before=tuple(apart)) as run:
        run.make_ready(Timed.RANKS, PATIENCE)
        work_in_slices_alone(run, both)
        assert not [pid for pid in run.pids if tracking.name(pid) in ("mpiexec", "prterun")]
    assert not running(f"{own}.helper")


@pytest.mark.ranks
def test_an_mpi_program_of_a_rank_goes_on_at_once(started: Started, tmp_path: Path) -> None:
    program = tmp_path / "starts.py"
    program.write_text(
        "import os, subprocess, sys\n"
        "from mpi4py import MPI\n"
        "own = {k: v for k, v in os.environ.items() if not k.startswith(('OMPI', 'PMI', 'PRTE'))}\n"
        "words = [sys.executable, '-c', 'from mpi4py import MPI']\n"
        "if MPI.COMM_WORLD.rank == 0: subprocess.run(words, env=own, check=True)\n"
        "MPI.COMM_WORLD.Barrier()\n"
    )
    words, variables = of_two("openmpi", sys.executable, str(program))
    with started(words, environment=variables) as run:
        ready(run)
        counts = to_the_end(run)
        assert run.gate.is_repeated
    assert counts["Barrier"].calls[0] in (1, 2)


def test_a_program_that_starts_others_is_stopped_at_any_moment(started: Started) -> None:
    """A parent in vfork(2) stops only when its child, which must not be stopped, executes."""
    code = "import subprocess\nwhile True: subprocess.run(['/bin/true'])"
    with started([sys.executable, "-c", code]) as run:
        run.make_ready(Timed.WHOLE, PATIENCE)
        began = time.monotonic()
        for _ in range(60):
            assert not run.work(0.005)
        assert time.monotonic() - began < 30
        run.kill()


def test_a_program_that_cannot_be_executed_is_reported_so(started: Started, tmp_path: Path) -> None:
    with started(["no-such-program"]) as run, pytest.raises(RunLost, match="No such file"):
        run.open_gate(None)
    program = tmp_path / "foreign"
    header = bytearray(Path("/proc/self/exe").read_bytes()[:4096])
    header[18:20] = (0xF3).to_bytes(2, "little")  # RISC-V; see elf(5), e_machine
    program.write_bytes(header)
    program.chmod(0o755)
    with started([str(program)]) as run, pytest.raises(RunLost, match="Exec format error"):
        run.open_gate(None)


def test_a_program_without_mpi_is_timed_as_a_whole(started: Started) -> None:
    with started([sys.executable, "-c", "import time; time.sleep(0.3)"]) as run:
        run.make_ready(Timed.WHOLE, PATIENCE)
        while not run.work(0.05):
            pass
        assert run.finish(PATIENCE) == 0
    assert run.seconds > 0.2
    assert not run.counts()


@pytest.mark.ranks
def test_ranks_that_do_not_all_leave_init_are_given_up(started: Started, tmp_path: Path) -> None:
    program = tmp_path / "stuck.py"
    program.write_text(
        "import os, time\n"
        "if os.environ['OMPI_COMM_WORLD_RANK'] == '1': time.sleep(100)\n"
        "from mpi4py import MPI\n"
    )
    words, variables = of_two("openmpi", sys.executable, str(program))
    lost = pytest.raises(RunLost, match="left MPI_Init")
    with started(words, environment=variables) as run, lost:
        run.open_gate(3.0)


def test_strangers_at_the_gate_are_sent_away(tmp_path: Path) -> None:
    with scratch.folder(scratch.SHORT, "hbmcomm-test-") as folder, Gate(folder, ()) as gate:
        for text in (b"", b"rank", b"rank 3 2 x", b"rank 0 99999 x", b"rank a b c", b"\xff" * 900):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
                stranger.connect(str(folder / SOCKET))
                stranger.send(text)
                for _ in range(2):
                    gate.hear(0.5)
                stranger.settimeout(5)
                assert stranger.recv(10) == b""
        assert not gate.ranks
        assert gate.keeper is None


def test_a_stop_while_the_clock_is_read_makes_no_call_shorter_or_longer(tmp_path: Path) -> None:
    source, program = Path(__file__).with_name("stopped_clock.c"), tmp_path / "clock"
    words = ["cc", "-O1", "-std=gnu11", f"-I{gate_build.SOURCES}", source, "-o", program]
    subprocess.run(words, check=True)
    subprocess.run([program], check=True)
