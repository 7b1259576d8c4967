"""TCP connections between processes for small notices: found by trying, both ends authenticated.

A process listens at the addresses that it announces alone: the loopback's where all callers share
its network, else those from which its routes lead to theirs. Who can reach these can connect. A
caller has PATIENCE to prove that it knows the secret; callers are read in turn, so none holds up
another.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hbmcomm import authentication, typed_json
from hbmcomm.authentication import CallerEnd, ListenerEnd, Place
from hbmcomm.transports.native import CALL_NAMES, ffi, lib

_LOOPBACK = "127.0.0.1"
PATIENCE = 2.0  # seconds for a caller to prove itself, and half of those until it has an answer
_BACKLOG = 4096  # connections, some for each rank of a host
CALLERS = 64  # unproved connections beside those of ranks; the oldest gives way to one more
NOTICE = 2**20  # bytes of a notice, at most
_KEEPALIVE = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 4000}
"""A host that vanishes is missed after some 4 seconds; the last is in milliseconds."""


class Notice(NamedTuple):
    """What a rank reports of one, which may be another."""

    rank: int
    what: str
    finished: int = 0
    """The calls that it has finished, where it leaves."""
    calls: tuple[tuple[int, str], ...] = ()
    """Its last ones with their numbers, where it waits."""
    text: str = ""
    """How calls differ, where they do."""


class Network(NamedTuple):
    """What a process can connect by; processes with equal ones share a loopback."""

    boot: str
    namespace: str
    addresses: tuple[str, ...]


class Listener:
    """Where one process can be reached.

    Attributes:
        offer: What others need to connect.
    """

    def __init__(self, addresses: Iterable[str], ranks: int = 1) -> None:
        """Listen at own addresses, and at no other.

        Args:
            ranks: How many will connect, each to every address.

        Raises:
            OSError: This process may not listen, or not there.
        """
        self._ranks = ranks
        self._callers: dict[socket.socket, _Caller] = {}
        self._doors: list[socket.socket] = []
        self._selector = selectors.DefaultSelector()
        try:
            for address in addresses:
                self._doors.append(socket.create_server((address, 0), backlog=_BACKLOG))
                self._doors[-1].setblocking(False)
                self._selector.register(self._doors[-1], selectors.EVENT_READ)
        except OSError:
            self.close()
            raise
        places = tuple(door.getsockname() for door in self._doors)
        self.offer = Offer(places, authentication.new_secret())

    def accept(self) -> tuple[int, Link] | None:
        """The next rank that connects and knows the secret; None: none did within PATIENCE."""
        end = time.monotonic() + PATIENCE
        while (left := end - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                ready: Any = key.fileobj
                if ready in self._doors:
                    self._admit(ready)
                elif ready in self._callers and (rank := self._rank_of(ready)) is not None:
                    return rank, Link(ready)
            now = time.monotonic()
            for late in [sock for sock, caller in self._callers.items() if caller.deadline < now]:
                self._forget(late).close()
        return None

    def _admit(self, door: socket.socket) -> None:
        with suppress(BlockingIOError, ConnectionError):  # it has gone
            connected, _ = door.accept()
            connected.setblocking(False)
            if len(self._callers) == CALLERS + self._ranks * len(self._doors):
                self._forget(next(iter(self._callers))).close()
            try:
                end = ListenerEnd(connected, self.offer.secret)
            except OSError:
                connected.close()
                return
            self._callers[connected] = _Caller(time.monotonic() + PATIENCE, end)
            self._selector.register(connected, selectors.EVENT_READ)

    def _rank_of(self, connected: socket.socket) -> int | None:
        """The rank of a caller that has proved itself, answered; None: not yet, or never."""
        end = self._callers[connected].listener_end
        try:
            rank = end.receive()
            if rank is not None:
                end.welcome()
                self._forget(connected)
            return rank
        except BlockingIOError:
            return None
        except OSError:
            self._forget(connected).close()
            return None

    def _forget(self, connected: socket.socket) -> socket.socket:
        self._selector.unregister(connected)
        del self._callers[connected]
        return connected

    def close(self) -> None:
        """Accept no more."""
        for connected in list(self._callers):
            self._forget(connected).close()
        self._selector.close()
        for door in self._doors:
            door.close()


class _Caller(NamedTuple):
    deadline: float
    """When it must have proved itself."""
    listener_end: ListenerEnd


class Offer(NamedTuple):
    """How to reach a listener."""

    places: tuple[Place, ...]
    secret: str
    """Another listener may have such an address on another host: it does not know the secret."""


class Link:
    """A connection; `fileno` makes it fit for poll()."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._rest = connected, b""
        connected.settimeout(PATIENCE)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for name, value in _KEEPALIVE.items():
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, notice: Notice) -> None:
        """Send a notice, if the other side still takes it."""
        with suppress(OSError):
            self._socket.sendall(typed_json.write(notice) + b"\n")

    def receive(self) -> list[Notice]:
        """The notices that have come; call it where poll() says so.

        Raises:
            ConnectionError, TimeoutError: The other process is gone, or its host.
            ValueError: It sends something else.
        """
        came = self._socket.recv(4096)
        if not came:
            raise ConnectionResetError("it closed its connection")
        *lines, self._rest = (self._rest + came).split(b"\n")
        if len(self._rest) > NOTICE:
            raise ValueError(f"a notice of more than {NOTICE:,} bytes")
        return [typed_json.read(Notice, line) for line in lines]

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def connect(offer: Offer, rank: int) -> Link:
    """A connection to a listener: the first that knows the secret, of all its places at once.

    Args:
        rank: This rank's number, for the listener.

    Raises:
        OSError: It cannot be reached.
    """
    deadline = time.monotonic() + 2 * PATIENCE
    with selectors.DefaultSelector() as waiting:
        for place in offer.places:
            connected = begin(place)
            end = CallerEnd(connected, offer.secret, place, rank)
            waiting.register(connected, selectors.EVENT_READ, end)
        try:
            while waiting.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in waiting.select(left):
                    caller: Any = key.fileobj
                    try:
                        is_proved = key.data.receive()
                    except BlockingIOError:
                        continue
                    except OSError:
                        waiting.unregister(caller)
                        caller.close()
                        continue
                    if is_proved:
                        waiting.unregister(caller)
                        return Link(caller)
        finally:
            for key in waiting.get_map().values():
                key.fileobj.close()  # type: ignore[union-attr]
    raise ConnectionRefusedError(f"no answer at {', '.join(map(str, offer.places))}")


def begin(place: Place) -> socket.socket:
    """A socket that is being connected; it is readable once a challenge has come or it failed."""
    made = socket.socket()
    made.setblocking(False)
    made.connect_ex(place)
    return made


def network() -> Network:
    """This process's."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        text = Path("/proc/net/fib_trie").read_text("ascii")
        namespace = str(Path("/proc/self/ns/net").readlink())
    except OSError:
        return Network("", "", (_LOOPBACK,))
    addresses = set(re.findall(r"\|-- ([\d.]+)\n\s+/32 host LOCAL", text))
    return Network(boot, namespace, tuple(sorted(addresses)))


def reached_at(own: Network, others: Collection[Network]) -> list[str]:
    """Which of the own addresses processes of these networks can connect to.

    The kernel chooses one for each of theirs, by its routes; nothing is sent. An address of another
    machine that forwards to this one (NAT) is none of its own: nobody is reached by that.
    """
    reachable = set[str]()
    theirs = {ip for other in others if other != own for ip in other.addresses}
    for address in theirs - set(own.addresses):
        with suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as asking:  # no route
            asking.connect((address, 9))  # discard
            reachable.add(asking.getsockname()[0])
    return sorted(reachable) or [_LOOPBACK]


_RECENT = 16  # calls


class Calls:
    """The calls of one rank, as another thread sees them.

    Args:
        numbers: How many have begun, how many are finished, and for how many seconds the one that
            is not finished has waited for a message.
        text: A call by its number, from 1 on; empty where it is not on record.
        lose: Ends the call that waits, and all later ones.
    """

    def __init__(
        self,
        numbers: Callable[[], tuple[int, int, float]] = lambda: (0, 0, 0.0),
        text: Callable[[int], str] = lambda _: "",
        lose: Callable[[], None] = lambda: None,
    ) -> None:
        self.numbers, self._text, self.lose = numbers, text, lose

    def recent(self) -> list[tuple[int, str]]:
        """The last ones with their numbers, for another rank."""
        begun, _, _ = self.numbers()
        numbers = range(max(begun - _RECENT, 0) + 1, begun + 1)
        return [(number, text) for number in numbers if (text := self._text(number))]

    def difference(self, others: Sequence[tuple[int, str]]) -> tuple[str, str] | None:
        """This rank's first call that differs from another's, and that one, from its `recent`."""
        for number, text in others:
            own = self._text(number)
            if own and own != text:
                return own, text
        return None


def calls_of(hosts: Any) -> Calls:
    """The calls of the core's communicator of all ranks, `hbm_comm *`."""

    def numbers() -> tuple[int, int, float]:
        begun, finished, waited = (ffi.new("uint64_t *") for _ in range(3))
        lib.hbm_calls(hosts, begun, finished, waited)
        return begun[0], finished[0], 1e-9 * waited[0]

    def text(number: int) -> str:
        made = ffi.new("hbm_made_call *")
        if not lib.hbm_call_of(hosts, number, made):
            return ""
        return f"{CALL_NAMES[made.operation]}({made.bytes:,} bytes, root={made.root})"

    return Calls(numbers, text, partial(lib.hbm_lose, hosts))
