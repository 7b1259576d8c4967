"""One run of a user's program that works only in its slices, while those of other arms are stopped.

A slice begins with SIGCONT, or with the gate's answer, and ends when the kernel shows each of the
run's processes stopped: without that, slices of two runs overlap. All of a run is stopped but its
launcher, which only waits for ranks. A process without its parent, such as a daemon, has the
driver as its parent then, or the first process of its container: it is stopped as well, and ended
with its run.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from experiments.jobs.gate import Gate
from experiments.model.errors import ExperimentsError
from experiments.model.program import CallCount, Timed
from experiments.processes import tracking

POLL = 0.02  # seconds between two looks at a command that starts or ends
PATIENCE = 300.0  # seconds until all ranks of a program have left MPI_Init, where one has
STOP_PATIENCE = 10.0  # seconds until the kernel has stopped all processes of a run
LEAVE_PATIENCE = 0.5  # seconds that processes may outlive their program, as one that still writes
RESTING = "TtZXx"
"""States of a process that does not run, in the stat of proc(5)."""


class Unstoppable(ExperimentsError):
    """A process does not stop, or may not be stopped by this user."""


class RunLost(ExperimentsError):
    """A run ended, or did not get on, before what is timed of it began."""


Poll = Callable[[], int | None]
"""The exit code of a command that has ended; None while it runs."""


class Run:
    """A program between its start and its end.

    Attributes:
        seconds: that it has worked in its slices.
        slices: how many it had.
        started: seconds from its command to its keeper: what starts a process, or a container.
        readied: seconds from the program's first instruction until all ranks left MPI_Init.
        timed: what of it is timed, known once it is ready.
        is_over: whether it has come to the end of that by itself.
        lines: nanoseconds that a cache line took between two CPUs and back, before each slice.
        unfinished: ranks that ended without MPI_Finalize, known once it has ended.
        outlived: names of processes that did not end with it, and were ended.
    """

    def __init__(
        self,
        gate: Gate,
        poll: Poll,
        adopted: bool = False,
        adopters: Iterable[int] = (),
    ) -> None:
        """A run, after its command has been started.

        Args:
            adopted: whether this process is the next parent of what its processes leave, as
                executables.adopting_orphans() makes it; a container has a process for that.
            adopters: the processes that are that on hosts of the run's own.
        """
        self.gate, self._poll, self._adopted = gate, poll, adopted
        self._adopters = tuple(adopters)
        self.seconds = self.started = self.readied = 0.0
        self.slices = 0
        self.timed = Timed.WHOLE
        self.is_over = False
        self.lines: list[int] = []
        self.unfinished: set[int] = set()
        self.outlived: list[str] = []
        self._stopped_since, self._stopped = 0, 0  # nanoseconds
        self._begun = self._at_work = False
        self._launchers: set[int] = set()
        self._before = set(_children(os.getpid()))
        """Children of this process as the run began to work: others come from the run."""
        self._orphans: dict[int, str] = {}
        """Those that came, by their PIDs: identities, "" of one that had ended."""

    def await_keeper(self, patience: float) -> None:
        """Until its keeper has come.

        Raises:
            RunLost: it did not.
        """
        began = time.monotonic()
        while self.gate.keeper is None:
            self.gate.hear(POLL)
            if self.gate.keeper is None and self._poll() is not None:
                raise RunLost("its command ended before the program began")
            if time.monotonic() - began > patience:
                raise RunLost(f"did not begin within {patience:.0f} s")
        self.started = time.monotonic() - began
        self._launchers = _ancestors(self.gate.keeper.pid)

    def make_ready(self, timed: Timed, patience: float, stopped: bool = True) -> None:
        """Let it work until all its ranks have left MPI_Init, and hold it there.

        A program of which the whole is timed stays where it is: before its first instruction.

        Args:
            stopped: whether its processes are stopped, beside that its ranks wait at the gate.

        Raises:
            RunLost: as open_gate(), or it ends before.
        """
        self.timed = timed
        if timed is Timed.RANKS:
            if not self.open_gate(patience):
                raise RunLost("ended before all its ranks had left MPI_Init")
            if stopped:
                self._stop()

    def open_gate(
        self,
        patience: float | None,
        look: Callable[[], None] = lambda: None,
        most: float = 0.0,
    ) -> bool:
        """Let the program begin; whether all its ranks came to the gate.

        Args:
            patience: seconds until they must have come; None for a program that may have none.
            look: called now and then while it works.
            most: seconds after which no rank is waited for, where none has come; 0.0: the end.

        Raises:
            RunLost: it cannot be executed, or ranks do not come in time.
        """
        assert self.gate.keeper
        self._at_work = True
        self._before = set(_children(os.getpid()))
        began, first_came = time.monotonic(), None
        self.gate.keeper.let_go()
        while not self.gate.is_complete:
            has_ended = self._poll() is not None
            self.gate.hear(POLL)
            if self.gate.refused:
                raise RunLost(os.strerror(self.gate.refused))
            if has_ended and not self.gate.ranks:
                return False
            if has_ended:
                raise RunLost("ended before all its ranks had left MPI_Init")
            look()
            now = time.monotonic()
            if self.gate.ranks and first_came is None:
                first_came = now
            waited = now - (began if patience or first_came is None else first_came)
            if (patience or self.gate.ranks) and waited > (patience or PATIENCE):
                came = f"{len(self.gate.ranks)} of {self.gate.size or 'its'} ranks"
                raise RunLost(f"{came} left MPI_Init within {waited:.0f} s")
            if most and not patience and not self.gate.ranks and now - began > most:
                return False
        self.readied = time.monotonic() - began
        self.timed = Timed.RANKS
        for rank in self.gate.ranks.values():
            self._launchers |= _ancestors(rank.pid)
        return True

    def work(self, seconds: float | None, stop: bool = True) -> bool:
        """Let it work for a slice; whether what is timed of it has come to its end.

        Args:
            seconds: None for as long as it takes.
            stop: whether it is stopped behind a slice that is not its last one.

        Raises:
            Unstoppable: it cannot be stopped again.
        """
        began = self._continue()
        self.is_over = self._await_end(seconds)
        ended = time.monotonic_ns()
        if not self.is_over and stop:
            self._stop()
            ended = self._stopped_since
        self.seconds += (ended - began) / 1e9
        self.slices += 1
        return self.is_over

    def finish(self, patience: float) -> int | None:
        """Let it do what is not timed, and end; what outlives it is ended as well.

        Returns:
            Its exit code; None where it does not end within so many seconds.
        """
        if self._stopped_since:
            self._continue()
        deadline = time.monotonic() + patience
        self.unfinished, answered = set(self.gate.ranks), set[int]()
        while (code := self._poll()) is None and time.monotonic() < deadline:
            self._answer(answered)
            self.gate.hear(POLL)
        self._answer(answered)
        if code is not None:
            self.end(LEAVE_PATIENCE)
        return code

    def _answer(self, answered: set[int]) -> None:
        """Let ranks go on that are at their end."""
        for number, rank in self.gate.ranks.items():
            if number not in answered and _has_message(rank.connection.fileno()):
                answered.add(number)
                if rank.is_at_finalize():
                    self.unfinished.discard(number)
                rank.let_go()

    def terminate(self) -> None:
        """Ask what works of it to end: SIGTERM, as for a run of which only a part is timed."""
        self._signal(signal.SIGTERM)
        if self._stopped_since:
            self._continue()

    def kill(self) -> None:
        """End what works of it: the first process of a container, for one, ignores SIGTERM."""
        self._signal(signal.SIGKILL)

    def end(self, patience: float = 0.0) -> None:
        """End what is left of it, once its command has ended.

        That is what a parent left, or a container of an engine that is gone.

        Args:
            patience: seconds in which it may end by itself.
        """
        self._at_work = True
        deadline = time.monotonic() + patience
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(POLL)
        self.outlived += sorted({tracking.name(tracking.pid_of(process)) for process in left})
        deadline = time.monotonic() + tracking.END_PATIENCE
        while left and time.monotonic() < deadline:
            tracking.signal_and_wait(left, signal.SIGKILL, deadline - time.monotonic())
            left = self._left()
        for pid in self._orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._orphans.clear()
        self._at_work = False

    def _left(self) -> set[str]:
        """Identities of its processes that live."""
        roots = self._living_orphans()
        if self.gate.keeper and not _has_message(self.gate.keeper.handle):  # it has not ended
            roots.add(self.gate.keeper.pid)
        return {tracking.identity(pid) for pid in _trees(roots)} - {""}

    def counts(self) -> dict[str, CallCount]:
        """The calls of all its ranks so far, added up."""
        total: dict[str, CallCount] = {}
        for rank in self.gate.ranks.values():
            for name, count in rank.counts().items():
                total.setdefault(name, CallCount()).add(count)
        return total

    def _await_end(self, seconds: float | None) -> bool:
        """Whether the end came within so many seconds: a rank's message, or a process's end.

        Ranks of another MPI program, which this one may start, are sent away: they go on at once.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            watching = select.poll()
            self.gate.watch(watching)
            if self.timed is Timed.RANKS:
                for rank in self.gate.ranks.values():
                    watching.register(rank.connection, select.POLLIN)
            else:
                assert self.gate.keeper
                watching.register(self.gate.keeper.handle, select.POLLIN)
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = {number for number, _ in watching.poll(None if left is None else left * 1000)}
            if not ready:
                return False
            if not self.gate.hear_ready(ready):
                return True

    def _continue(self) -> int:
        """Let it work; when that began, in nanoseconds of the monotonic clock."""
        if self._stopped_since:
            self._stopped += time.monotonic_ns() - self._stopped_since
            self._stopped_since = 0
            for rank in self.gate.ranks.values():
                rank.set_stopped(self._stopped)
        pids = self.pids  # a look at all processes, which is not the program's time
        self._at_work, self._before = True, set(_children(os.getpid()))
        began = time.monotonic_ns()
        for pid in pids:
            _send(pid, signal.SIGCONT)
        if not self._begun:
            self._begun = True
            for process in self.gate.held:
                process.let_go()
        return began

    def _stop(self) -> None:
        """Stop all its processes, and wait until the kernel shows that they are.

        Parents first: one that has just begun a child by vfork(2) stops once the child executes.
        A look at many threads takes longer than their stop: what counts is when the look began.
        """
        deadline = time.monotonic() + STOP_PATIENCE
        seen, level = set[int](), self._roots()
        while level:
            own = level - self._launchers
            for pid in own:
                _send(pid, signal.SIGSTOP)
            working, looked = own, 0
            while working:
                if time.monotonic() > deadline:
                    raise Unstoppable(
                        f"process {min(working)} of the program does not stop within "
                        f"{STOP_PATIENCE:.0f} s of SIGSTOP"
                    )
                looked = time.monotonic_ns()
                working = {pid for pid in working if _works(pid)}
            if own:
                self._stopped_since = looked
            seen |= level
            level = {child for pid in seen for child in _children(pid)} | self._roots()
            level -= seen
        self._at_work = False

    def _signal(self, number: int) -> None:
        for pid in self.pids:
            _send(pid, number)

    @property
    def pids(self) -> set[int]:
        """All its processes, but those that only wait for ranks."""
        return _trees(self._roots()) - self._launchers

    def _roots(self) -> set[int]:
        """Processes of which each other one of the run is a descendant."""
        roots = self._living_orphans() | {rank.pid for rank in self.gate.ranks.values()}
        if self.gate.keeper:
            roots |= {self.gate.keeper.pid, _first_there(self.gate.keeper.pid)}
        return roots

    def _living_orphans(self) -> set[int]:
        """Its processes that have this one as their parent, since their own has ended."""
        if self._adopted and self._at_work:
            for pid in set(_children(os.getpid())) - self._before - self._orphans.keys():
                self._orphans[pid] = tracking.identity(pid)
        own = {pid for pid, process in self._orphans.items() if tracking.identity(pid) == process}
        return own.union(*map(_children, self._adopters))


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        raise Unstoppable(
            f"this user may not stop process {pid} of the program, which another user runs: "
            "run ./inv as root, or leave out that environment"
        ) from error


def _descendants(pid: int) -> list[int]:
    """The processes that a process and its children have started and that still live."""
    return [descendant for child in _children(pid) for descendant in (child, *_descendants(child))]


def _trees(roots: Iterable[int]) -> set[int]:
    """Processes, and all that descend from them."""
    return {pid for root in roots for pid in (root, *_descendants(root))}


def _ancestors(pid: int) -> set[int]:
    """The processes between one and this process, or the first of the machine."""
    ancestors = set[int]()
    while (pid := tracking.parent_of(pid)) > 0 and pid != os.getpid():
        ancestors.add(pid)
    return ancestors


def _first_there(pid: int) -> int:
    """The first process above one that shares a PID namespace with it, other than this one's."""
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        namespace = Path(f"/proc/{pid}/ns/pid").readlink()
        if namespace != Path("/proc/self/ns/pid").readlink():
            while (parent := tracking.parent_of(pid)) > 0:
                if Path(f"/proc/{parent}/ns/pid").readlink() != namespace:
                    break
                pid = parent
    return pid


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in _tasks(pid):
        with contextlib.suppress(OSError):
            children += map(int, (task / "children").read_text().split())
    return children


def _works(pid: int) -> bool:
    """Whether any thread of a process is neither stopped nor gone."""
    for task in _tasks(pid):
        with contextlib.suppress(OSError):
            text = (task / "stat").read_text(errors="replace")
            if text.rpartition(")")[2].split()[0] not in RESTING:
                return True
    return False


def _tasks(pid: int) -> list[Path]:
    """The threads of a process; none of one that is gone."""
    with contextlib.suppress(OSError):
        return list(Path(f"/proc/{pid}/task").iterdir())
    return []


def _has_message(descriptor: int) -> bool:
    watching = select.poll()
    watching.register(descriptor, select.POLLIN)
    return bool(watching.poll(0))
