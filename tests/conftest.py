"""The one way in which a test starts MPI ranks."""

import contextlib
import functools
import gc
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from experiments.emulation.emulated_hosts import Hosts, up
from experiments.emulation.keepers import HostsRefused
from experiments.environments.mpiexec import mpiexec
from experiments.environments.process import Process
from experiments.jobs.execute import execute
from experiments.processes import tracking
from experiments.provision import passthrough
from tests.ahead import environment_of
from tests.starting import MakeHosts, Ranks, Start

GUESTS, VISITS = "tests/experiments/emulation/", "tests/experiments/emulation/in_guest/"
STOPPED = "tests/experiments/emulation/test_stopped_campaign.py"
CLUSTER = "tests/experiments/cluster/"
CORE = "tests/native/"
CORE_ALONE = f"{CORE}test_core.py"
FIGURES = "tests/plots/"
EXACT = "tests/experiments/driver/test_program_accuracy.py"
pytest_plugins = ["tests.campaigns", "tests.second_user", "tests.sharing", "tests.skips"]

hypothesis.settings.register_profile("suite", deadline=None)  # a busy machine takes its time
hypothesis.settings.load_profile("suite")

RARE_SECONDS = 1800.0
"""For one rare test: some take minutes on a machine that has nothing else to do."""
SURVIVORS = {
    "openmpi": "--enable-recovery",
    "mpich": "-disable-auto-cleanup",
    "impi": "-disable-auto-cleanup",
}
"""What keeps the other ranks running when one of them dies."""
UNNOTICED = ("/bin/sh", "-c", 'trap "" USR1; "$@" || sleep 4; exit 0', "sh")
"""Some launchers may end the others all the same, so they hear of a death later than those do.
MPICH's announces it by a signal, which would end a shell."""


def start(
    folder: Path,
    program: Path | str,
    ranks: Any,
    *args: str,
    hosts: Hosts | None = None,
    mpi: str = "openmpi",
    prefix: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    code: int | None = 0,
    survivors: bool = False,
) -> Ranks:
    """What the fixtures do.

    Args:
        folder: Takes what the ranks print.
        ranks: How many; with `hosts`, the host of each.
    """
    prefix = prefix or environment_of(mpi)
    module = ["-m", program] if isinstance(program, str) else [str(program)]
    words = [f"{prefix}/bin/python", *module, *args]
    if hosts is None:
        argv, variables = mpiexec(mpi, prefix, ranks, _cores(), words)
    else:
        process = hosts.mpi(mpi, prefix, ranks, _cores(), words)
        argv, variables = list(process.argv), dict(process.environment)
    if survivors:
        _let_survive(argv, mpi, prefix)
    return ended(Process(tuple(argv), variables | dict(env or {})), folder, timeout, code)


def _cores() -> int:
    """How many cores ranks have: those beside more tests than cores yield while they wait."""
    cores = passthrough.cores()
    return 1 if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)) > cores else cores


def _let_survive(argv: list[str], mpi: str, prefix: Path) -> None:
    """Change the command of an MPI job: a rank that dies takes no other with it."""
    at = argv.index(f"{prefix}/bin/python")
    argv[at:at] = [] if mpi == "impi" else UNNOTICED
    argv.insert(argv.index(f"{prefix}/bin/mpiexec") + 1, SURVIVORS[mpi])


def ended(command: Process, folder: Path, timeout: float, code: int | None) -> Ranks:
    """Run the command of an MPI job to its end; another exit code than `code` fails the test."""
    log, deadline = folder / "ranks.log", time.monotonic() + timeout

    def tick() -> None:
        if time.monotonic() > deadline:
            pytest.fail(f"ranks still ran after {timeout:.0f} s:\n{log.read_text()}")

    exit_code = execute(command, log, None, tick)
    output = log.read_text(errors="replace")
    if code is not None:
        assert exit_code == code, f"{command.argv} ended with {exit_code}:\n{output}"
    return Ranks(exit_code, output)


@pytest.fixture
def mpirun(tmp_path: Path) -> Start:
    """mpirun(program, ranks, *args, mpi="openmpi", prefix=None, env=None, timeout=120, code=0,
    survivors=False)

    Starts a Python file, or "-m" and a module, on ranks of an MPI, in that MPI's environment or the
    one at `prefix`; nothing of it outlives the call.
    Another exit code than `code` fails the test with what the ranks printed. With `survivors` a
    rank that dies takes no other with it.
    """
    return functools.partial(start, tmp_path)


@pytest.fixture(scope="session")
def mpirun_in() -> Start:
    """mpirun_in(folder, ...) as mpirun(...): for what several tests look at."""
    return start


@pytest.fixture
def hosts() -> Iterator[MakeHosts]:
    """hosts(count=2, rate="1gbit", delay=""): emulated hosts, which end with the test."""
    with contextlib.ExitStack() as stack:

        def made(count: int = 2, rate: str = "1gbit", delay: str = "") -> Hosts:
            try:
                return stack.enter_context(up(count, rate, delay))
            except HostsRefused as refused:
                pytest.skip(str(refused))

        yield made


@pytest.fixture
def mpirun_on(tmp_path: Path) -> Start:
    """mpirun_on(hosts, ranks, program, *args, mpi="openmpi", env=None, timeout=120, code=0,
    survivors=False)

    As mpirun(...), on emulated hosts; `ranks` has the host of each rank: hosts.packed(2) or
    hosts.in_turn(4).
    """

    def run(
        hosts: Hosts, ranks: Sequence[str], program: Path | str, *args: str, **how: Any
    ) -> Ranks:
        return start(tmp_path, program, ranks, *args, hosts=hosts, **how)

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests early, or one core idles at the end; visits last, with least priority.

    How exact an answer is shows once those have ended, which take the caches that programs share.
    Intel MPI is made from MPICH, so what is tested with both is rare with Intel MPI.
    """

    def place(item: pytest.Item) -> int:
        if item.nodeid.startswith(EXACT):
            return 3
        if item.nodeid.startswith(VISITS):
            return 2
        return 0 if item.nodeid.startswith((GUESTS, CORE)) else 1

    items.sort(key=place)
    for item in items:
        if item.nodeid.startswith(FIGURES):
            item.add_marker(pytest.mark.figures)
        if any(isinstance(value, str) and value == "impi" for value in _parameters(item)):
            item.add_marker(pytest.mark.rare)
        if item.get_closest_marker("rare") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(RARE_SECONDS))


def _parameters(item: pytest.Item) -> list[object]:
    return [*item.callspec.params.values()] if hasattr(item, "callspec") else []


class InTwoGroups(LoadScopeScheduling):
    """Guests of emulated machines; and all else that does not run beside others.

    Builds of the core are with the guests, and so are clusters: their hosts have a /dev/shm of
    their own. Both groups take as long.
    """

    def _split_scope(self, nodeid: str) -> str:
        beside = nodeid.startswith((GUESTS, CLUSTER, CORE_ALONE))
        return "beside" if beside and not nodeid.startswith(STOPPED) else "alone"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> InTwoGroups | None:
    """What `--dist loadscope` means here."""
    return InTwoGroups(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Open MPI leaves the segment of a process that used it without mpiexec, as pytest's may."""
    own = Path("/proc/self/maps").read_text()
    for segment in tracking.segments():
        if str(segment) in own:
            segment.unlink(missing_ok=True)
