"""The driver's ends of TCP connections to ranks on the nodes of an allocation.

Anyone on the network can connect, and has PATIENCE to prove to know the secret in the launch's
folder, which only this user can read; nobody is waited for. When the driver ends, however that may
be, its node closes the connections; a node that is lost no longer answers.

The driver does not know by which network other nodes reach it, so it listens at each address that
it announces, and at no other. An address of another machine that forwards to this one (NAT) is none
of these: ranks behind one say so when they start.
"""

import contextlib
import errno
import fcntl
import json
import resource
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from experiments.measure.lines import LISTENER, end_with_peer, whole_lines
from experiments.model.errors import ExperimentsError
from experiments.processes import executables
from experiments.processes.files import whole_file
from experiments.schedule.turns import Lost
from hbmcomm import authentication
from hbmcomm.authentication import ListenerEnd

BYTES = 65536
PATIENCE = 2.0  # seconds for whoever connects to prove itself
CALLERS = 64  # unproved connections beside those of ranks; the oldest gives way to one more
PRIVATE = 0o600  # who reads the secret takes orders in the place of a rank
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
        executables.open_as_many_files_as_allowed()
        self._ranks, self._secret = ranks, authentication.new_secret()
        self._listeners = [self.enter_context(listener) for listener in _listeners()]
        self._callers: list[tuple[float, socket.socket, ListenerEnd]] = []  # with their deadlines
        self.callback(self._send_away)
        self._connections: dict[int, socket.socket] = {}
        self._parts: dict[int, bytes] = {}
        self._selector = self.enter_context(selectors.DefaultSelector())
        places = [listener.getsockname() for listener in self._listeners]
        with whole_file(place / LISTENER, PRIVATE) as file:
            file.write(json.dumps({"places": places, "secret": self._secret}).encode())

    def connect(self) -> bool:
        """Connect the ranks that wait for orders; whether all do. Waits for nobody.

        Raises:
            ExperimentsError: launches that are alive have more than this process may open files.
        """
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                for _ in range(QUEUE):
                    self._challenge(_accepted(listener))
                    if len(self._callers) > CALLERS + self._ranks:
                        self._hear()
        self._hear()
        if len(self._connections) < self._ranks:
            return False
        self._send_away()
        return True

    def _challenge(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        try:
            end = ListenerEnd(connection, self._secret)
        except OSError:  # it has gone
            connection.close()
        else:
            self._callers.append((time.monotonic() + PATIENCE, connection, end))

    def _send_away(self) -> None:
        """Close what waits to be heard."""
        while self._callers:
            self._callers.pop()[1].close()

    def _hear(self) -> None:
        """Connect each caller that has proved to be a rank, and send away whoever is late."""
        now, most = time.monotonic(), CALLERS + self._ranks
        callers, self._callers = self._callers, []
        for number, (deadline, connection, end) in enumerate(callers):
            try:
                rank = end.receive()
                if rank is None:
                    raise BlockingIOError
                self._connect(rank, connection, end)
            except BlockingIOError:
                if now < deadline and len(callers) - number <= most:
                    self._callers.append((deadline, connection, end))
                else:
                    connection.close()
            except OSError:
                connection.close()

    def _connect(self, rank: int, connection: socket.socket, end: ListenerEnd) -> None:
        """Welcome a rank; OSError where it has gone, is connected, or is none of this launch."""
        if rank in self._connections or rank not in range(self._ranks):
            raise ConnectionRefusedError(f"rank {rank} is none to connect")
        end_with_peer(connection)
        connection.setblocking(True)
        end.welcome()
        self.enter_context(connection)
        self._connections[rank], self._parts[rank] = connection, b""
        self._selector.register(connection, selectors.EVENT_READ, rank)

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
            ValueError: a rank sends no lines.
        """
        received: list[str] = []
        for key, _ in self._selector.select(patience):
            rank = key.data
            with _on_node_of(rank):
                more = self._connections[rank].recv(BYTES)
            if not more:
                raise BrokenPipeError(f"rank {rank} has ended")
            lines, self._parts[rank] = whole_lines(self._parts[rank] + more)
            received += lines
        return received


def _accepted(listener: socket.socket) -> socket.socket:
    """The next connection; BlockingIOError where there is none."""
    try:
        return listener.accept()[0]
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    raise ExperimentsError(
        "taking turns needs an open file for every rank of a block's launches, and this "
        f"process may open {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}: raise the limit "
        "(ulimit -Hn), or write turns = false for the site"
    )


@contextlib.contextmanager
def _on_node_of(rank: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in UNREACHABLE:
            raise NodeLost(f"the node of rank {rank} no longer answers") from error
        raise


def _listeners() -> list[socket.socket]:
    """One at each address of this node, in the order in which ranks try them.

    Raises:
        ExperimentsError: there is no address.
    """
    made = []
    for address in addresses():
        try:
            made.append(socket.create_server((address, 0), backlog=QUEUE))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:  # it has gone
                raise
            continue
        made[-1].setblocking(False)
    if not made:
        raise ExperimentsError(
            "no network interface of this node has an IPv4 address, by which ranks of other nodes "
            "could reach it: see ip address, or write turns = false for the site"
        )
    return made


def addresses() -> list[str]:
    """The IPv4 addresses of this node, that of the loopback device last."""
    return sorted(interfaces(), key=lambda address: address.startswith("127."))


def interfaces() -> dict[str, str]:
    """The network interfaces of this machine by their IPv4 addresses."""
    by_address: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            with contextlib.suppress(OSError):  # it has none
                answer = fcntl.ioctl(asking, SIOCGIFADDR, request)
                by_address.setdefault(socket.inet_ntoa(answer[20:24]), name)
    return by_address
