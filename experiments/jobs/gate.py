"""The driver's end of the gate that a user's program passes: experiments/programs/gate has its C.

A keeper announces each run before it becomes the program, and each rank comes as it leaves
MPI_Init; both wait for an answer. The kernel says which processes they are. What a rank counts is
in memory that it shares; anyone may have written it, so it is read, never mapped.
"""

import contextlib
import os
import re
import select
import socket
import struct
from collections.abc import Collection, Sequence
from pathlib import Path

from experiments.model.program import BANDS, SOCKET, CallCount
from experiments.processes import executables

MESSAGE = 2048  # bytes, at most
GO = b"."
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: unix(7), SO_PEERCRED
STOPPED = struct.Struct("Q")
COUNTER = struct.Struct(f"32sQ{2 * BANDS}Q")
MOST_COUNTERS = 1000
MOST_RANKS = 4096


class Announced:
    """A process that waits at the gate, or has passed it; closed with the gate.

    Attributes:
        pid: on this machine.
    """

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.connection, self.pid = connection, pid

    def let_go(self) -> None:
        """Answer it."""
        with contextlib.suppress(OSError):  # it has ended
            self.connection.send(GO)

    def close(self) -> None:
        """Forget it."""
        self.connection.close()


class Keeper(Announced):
    """The process that becomes the program.

    Attributes:
        handle: a descriptor of the process, which no later one with its PID has.
    """

    def __init__(self, connection: socket.socket, pid: int) -> None:
        super().__init__(connection, pid)
        self.handle = os.pidfd_open(pid)

    def close(self) -> None:
        """Forget it."""
        super().close()
        os.close(self.handle)


class Rank(Announced):
    """A rank of the program.

    Attributes:
        library: the path of its MPI, as it sees it.
    """

    def __init__(self, connection: socket.socket, pid: int, library: str, counters: int) -> None:
        super().__init__(connection, pid)
        self.library, self._counters = library, counters

    def is_at_finalize(self) -> bool:
        """Whether the message that has come from it says so; else the rank has ended."""
        with contextlib.suppress(OSError):
            return bool(self.connection.recv(MESSAGE))
        return False

    def set_stopped(self, nanoseconds: int) -> None:
        """Say for how long it has been stopped so far."""
        if self._counters >= 0:
            with contextlib.suppress(OSError):
                os.pwrite(self._counters, STOPPED.pack(nanoseconds), 0)

    def counts(self) -> dict[str, CallCount]:
        """Its calls so far, by their names without "MPI_" and "_c"; none where none are counted."""
        if self._counters < 0:
            return {}
        data = os.pread(self._counters, STOPPED.size + MOST_COUNTERS * COUNTER.size, 0)
        counts: dict[str, CallCount] = {}
        whole = (len(data) - STOPPED.size) // COUNTER.size
        for at in range(max(whole, 0)):
            name, size, *bands = COUNTER.unpack_from(data, STOPPED.size + at * COUNTER.size)
            text = name.rstrip(b"\0").decode("ascii", "replace")
            if not re.fullmatch(r"[A-Za-z_]{1,31}", text):
                break
            if any(bands):
                count = counts.setdefault(text.removesuffix("_c"), CallCount())
                count.add(CallCount(size, list(bands[::2]), list(bands[1::2])))
        return counts

    def close(self) -> None:
        """Forget it."""
        super().close()
        if self._counters >= 0:
            os.close(self._counters)


class Gate(contextlib.ExitStack):
    """The gate of one run of a program; closed with the block.

    Attributes:
        keeper: the process that becomes the program, once it has come.
        facts: what the environment allows, as keeper.c writes it.
        ranks: by their numbers in COMM_WORLD.
        size: of COMM_WORLD; 0 before a rank has come.
        refused: the errno with which the program could not be executed, or 0.
        executes: whether the keeper has become the program.
        is_repeated: whether ranks of a second MPI program came, which are not held.
    """

    def __init__(self, folder: Path, users: Collection[int]) -> None:
        """Listen in a folder whose path is short.

        Args:
            users: UIDs of the processes that may come.
        """
        super().__init__()
        executables.open_as_many_files_as_allowed()
        self.keeper: Keeper | None = None
        self.facts: dict[str, int] = {}
        self.ranks: dict[int, Rank] = {}
        self.size = self.refused = 0
        self.executes = self.is_repeated = False
        self._users = {0, os.geteuid(), *users} if os.geteuid() == 0 else {os.geteuid(), *users}
        self._listener = self.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self._listener.bind(str(folder / SOCKET))
        (folder / SOCKET).chmod(0o666)  # who may come is decided by the folder, and by `users`
        self._listener.listen(MOST_RANKS)
        self._listener.setblocking(False)
        self._unheard: list[tuple[socket.socket, int]] = []
        self.callback(self._send_away)

    def hear(self, patience: float) -> None:
        """Take in who comes within so many seconds; returns after the first that came."""
        watching = select.poll()
        self.watch(watching)
        ready = {descriptor for descriptor, _ in watching.poll(patience * 1000)}
        self.hear_ready(ready)

    def watch(self, watching: select.poll) -> None:
        """Register the descriptors that hear_ready() takes: of callers, and of the keeper."""
        watching.register(self._listener, select.POLLIN)
        for connection, _ in self._unheard:
            watching.register(connection, select.POLLIN)
        if self._awaited:
            watching.register(self._awaited.connection, select.POLLIN)

    def hear_ready(self, ready: Collection[int]) -> bool:
        """Take in new callers and messages; whether any of `ready` was a descriptor of watch()."""
        own, keeper = 0, self._awaited
        if self._listener.fileno() in ready:
            self._accept()
            own += 1
        for caller in [one for one in self._unheard if one[0].fileno() in ready]:
            self._unheard.remove(caller)
            self._take(*caller)
            own += 1
        if keeper and keeper.connection.fileno() in ready:
            self._hear_keeper()
            own += 1
        return own > 0

    @property
    def _awaited(self) -> Keeper | None:
        """The keeper, as long as it may say that it cannot execute the program."""
        return None if self.executes or self.refused else self.keeper

    @property
    def held(self) -> Sequence[Announced]:
        """The processes that wait to be let go: ranks, or the program without any."""
        return list(self.ranks.values()) or ([self.keeper] if self.keeper else [])

    @property
    def is_complete(self) -> bool:
        """Whether all ranks have come."""
        return 0 < self.size == len(self.ranks)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = self._listener.accept()
                credentials = connection.getsockopt(
                    socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size
                )
                pid, user, _ = CREDENTIALS.unpack(credentials)
                if user in self._users and pid > 0:
                    self._unheard.append((connection, pid))
                else:
                    connection.close()

    def _take(self, connection: socket.socket, pid: int) -> None:
        """A first message: who it is. Whoever says something else is sent away."""
        files: list[int] = []
        try:
            text, files, _, _ = socket.recv_fds(connection, MESSAGE, 1)
            words = text.decode("utf-8", "replace").split(" ", 3)
            if words[0] == "ready" and self.keeper is None:
                self.facts = {
                    name: int(value)
                    for name, value in re.findall(r"\b([a-z]+)=(-?\d{1,20})\b", text.decode())
                }
                self.keeper = Keeper(connection, pid)
                self.callback(self.keeper.close)
                return
            if words[0] == "rank" and len(words) == 4:
                number, size = int(words[1]), int(words[2])
                fits = number not in self.ranks and size == (self.size or size)
                self.is_repeated |= self.is_complete or not fits
                if not self.is_complete and fits and 0 <= number < size <= MOST_RANKS:
                    self.size = size
                    rank = Rank(connection, pid, words[3], files.pop() if files else -1)
                    self.ranks[number] = rank
                    self.callback(rank.close)
                    return
        except (OSError, ValueError):
            pass
        for file in files:
            os.close(file)
        connection.close()

    def _hear_keeper(self) -> None:
        """It says that it cannot execute the program; its end of the line closes where it can."""
        assert self.keeper
        text = b""
        with contextlib.suppress(OSError):
            text = self.keeper.connection.recv(MESSAGE)
        if refusal := re.fullmatch(rb"failed (\d{1,4})", text):
            self.refused = int(refusal[1])
        else:
            self.executes = True

    def _send_away(self) -> None:
        for connection, _ in self._unheard:
            connection.close()
