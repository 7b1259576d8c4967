"""The driver's ends of TCP connections to ranks on the nodes of an allocation.

A rank shows the token in the launch's folder, which only this user can read. Anyone on the network
can connect, and has HELLO_PATIENCE to do so; nobody is waited for. When the driver ends, however
that may be, its node closes the connections; a node that is lost no longer answers.
"""

import contextlib
import errno
import fcntl
import hmac
import json
import os
import resource
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from experiments.model.errors import ExperimentsError
from experiments.programs.measure.lines import LISTENER, WELCOME, end_with_peer
from experiments.schedule.turns import Lost

BYTES = 65536
HELLO_BYTES = 200  # of a rank's first line, at most
HELLO_PATIENCE = 1.0  # seconds for the first line of whoever connects
CALLERS = 64  # connections without a first line; the oldest gives way to one more
QUEUE = 1024  # ranks that connect at once; later ones try again
UNREACHABLE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)
SIOCGIFADDR = 0x8915  # netdevice(7): the address of an interface


class NodeLost(Lost):
    """A node that ranks of a launch run on no longer answers."""


class Sockets(contextlib.ExitStack):
    """Lines to the ranks of a launch and from them; closed with the block."""

    def __init__(self, place: Path, ranks: int) -> None:
        """Listen, and write how into the launch's folder, before the launch is started."""
        super().__init__()
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
        self._ranks, self._token = ranks, secrets.token_hex(16)
        self._listener = self.enter_context(socket.create_server(("", 0), backlog=QUEUE))
        self._listener.setblocking(False)
        self._callers: list[tuple[float, socket.socket]] = []  # until when each has time
        self.callback(self._send_away)
        self._connections: dict[int, socket.socket] = {}
        self._parts: dict[int, bytes] = {}
        self._selector = self.enter_context(selectors.DefaultSelector())
        port = self._listener.getsockname()[1]
        found = {"addresses": addresses(), "port": port, "token": self._token}
        with os.fdopen(os.open(place / LISTENER, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(found, file)

    def connect(self) -> bool:
        """Connect the ranks that wait for orders; whether all do. Waits for nobody.

        Raises:
            ExperimentsError: launches that are alive have more than this process may open files.
        """
        with contextlib.suppress(BlockingIOError):
            for _ in range(QUEUE):
                connection = self._accepted()
                connection.setblocking(False)
                self._callers.append((time.monotonic() + HELLO_PATIENCE, connection))
                self._hear()
        self._hear()
        if len(self._connections) < self._ranks:
            return False
        self._send_away()
        return True

    def _send_away(self) -> None:
        """Close what waits to be heard."""
        while self._callers:
            self._callers.pop()[1].close()

    def _hear(self) -> None:
        """Connect each caller that has shown that it is a rank, and send away whoever is late."""
        now = time.monotonic()
        callers, self._callers = self._callers, []
        for number, (end, connection) in enumerate(callers):
            try:
                rank = self._rank_of(connection)
            except BlockingIOError:
                if now < end and len(callers) - number <= CALLERS:
                    self._callers.append((end, connection))
                    continue
                rank = None
            if rank is None:
                connection.close()
            else:
                self.enter_context(connection)
                self._connections[rank], self._parts[rank] = connection, b""
                self._selector.register(connection, selectors.EVENT_READ, rank)

    def _accepted(self) -> socket.socket:
        """The next connection; BlockingIOError where there is none."""
        try:
            return self._listener.accept()[0]
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
        raise ExperimentsError(
            "taking turns needs an open file for every rank of a block's launches, and this "
            f"process may open {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}: raise the limit "
            "(ulimit -Hn), or write turns = false for the site"
        )

    def _rank_of(self, connection: socket.socket) -> int | None:
        """The rank that connects, welcomed; None for anybody else; BlockingIOError: not yet."""
        try:
            hello = connection.recv(HELLO_BYTES, socket.MSG_PEEK)
            if hello and len(hello) < HELLO_BYTES and not hello.endswith(b"\n"):
                raise BlockingIOError
            said = json.loads(connection.recv(len(hello)))
            known = hmac.compare_digest(str(said["token"]).encode(), self._token.encode())
            rank = range(self._ranks).index(said["rank"])
            if known and rank not in self._connections:
                end_with_peer(connection)
                connection.setblocking(True)
                connection.sendall(WELCOME.encode())
                return rank
        except BlockingIOError:
            raise
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def send(self, line: str) -> None:
        """Send a line to all ranks.

        Raises:
            NodeLost: the node of one no longer answers.
            OSError: one has ended.
        """
        for rank, connection in self._connections.items():
            with _on_node_of(rank):
                connection.sendall(line.encode())

    def receive(self, patience: float) -> list[str]:
        """The lines that ranks have sent, once there are some; none after `patience` seconds.

        Raises:
            NodeLost: the node of a rank no longer answers.
            OSError: a rank has ended.
        """
        found: list[bytes] = []
        for key, _ in self._selector.select(patience):
            rank = key.data
            with _on_node_of(rank):
                more = self._connections[rank].recv(BYTES)
            if not more:
                raise BrokenPipeError(f"rank {rank} has ended")
            *lines, self._parts[rank] = (self._parts[rank] + more).split(b"\n")
            found += lines
        return [line.decode(errors="replace") for line in found]


@contextlib.contextmanager
def _on_node_of(rank: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in UNREACHABLE:
            raise NodeLost(f"the node of rank {rank} no longer answers") from error
        raise


def addresses() -> list[str]:
    """The IPv4 addresses of this node, that of the loopback device last."""
    return sorted(interfaces(), key=lambda address: address.startswith("127."))


def interfaces() -> dict[str, str]:
    """The network interfaces of this machine by their IPv4 addresses."""
    found: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            with contextlib.suppress(OSError):  # it has none
                answer = fcntl.ioctl(asking, SIOCGIFADDR, request)
                found.setdefault(socket.inet_ntoa(answer[20:24]), name)
    return found
