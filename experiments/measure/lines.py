"""A rank's end of the line to the driver: pipes in the launch's folder, or TCP between nodes.

The driver makes its end before the launch starts (jobs/channel.py, jobs/sockets.py). Where one end
is gone, a read of the other ends. Pipes are this user's alone; a port can be anyone's, so both ends
prove that they know a secret of the launch's folder.
"""

import contextlib
import json
import math
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from hbmcomm.authentication import CallerEnd, Place

SECONDS = 0.2  # between two writes, at least


class Progress:
    """One rank's say; a rank without a path says nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._cells = self._total = self._operations = 0
        self._told = -math.inf

    def cells(self, done: int, total: int) -> None:
        """So many of all cells are done."""
        self._cells, self._total = done, total
        self._tell()

    def tick(self, operations: int) -> None:
        """So many more operations are done."""
        self._operations += operations
        self._tell()

    def _tell(self) -> None:
        if self._path is not None and time.monotonic() - self._told > SECONDS:
            self._told = time.monotonic()
            text = f"{self._cells} {self._total} {self._operations}"
            self._path.write_text(text, encoding="utf-8")


ANSWERS = "answers"
"""The pipe that all answers go by."""
LISTENER = "listener.json"
"""The file with the places of the driver, each an address and a port, and the secret."""
PATIENCE = 5.0  # seconds until an address answers
WELCOME_PATIENCE = 3600.0
"""Seconds until the driver has answered: it first waits for other launches of the block to start,
each for minutes."""
LONGEST = 2**20  # bytes of a line
SILENCE = 6  # seconds until a node that answers nothing is taken for lost


def pipe_of(rank: int) -> str:
    """The name of the pipe that a rank's orders come by."""
    return f"orders.{rank}"


def are_there(folder: Path) -> bool:
    """Whether a driver gives a launch its turns."""
    return (folder / ANSWERS).exists() or (folder / LISTENER).exists()


@contextlib.contextmanager
def opened(folder: Path, rank: int) -> Iterator[tuple[TextIO, TextIO]]:
    """What orders are read from and answers are written to.

    Raises:
        SystemExit: the driver does not answer within WELCOME_PATIENCE.
    """
    with contextlib.ExitStack() as stack:
        if (folder / LISTENER).exists():
            listener = json.loads((folder / LISTENER).read_text())
            connection = stack.enter_context(_connected(listener, rank))
            orders = stack.enter_context(connection.makefile("r"))
            yield orders, stack.enter_context(connection.makefile("w"))
        else:
            orders = stack.enter_context((folder / pipe_of(rank)).open("r"))
            yield orders, stack.enter_context((folder / ANSWERS).open("w"))


def _connected(listener: Mapping[str, Any], rank: int) -> socket.socket:
    """A connection to the driver, by the first place where it is."""
    deadline = time.monotonic() + WELCOME_PATIENCE
    failures = []
    for address, port in listener["places"]:
        try:
            return _welcomed((address, port), listener["secret"], rank, deadline)
        except OSError as error:
            failures.append(f"{address}: {error}")
    raise SystemExit(
        f"rank {rank} cannot reach the driver of this campaign ({'; '.join(failures)}): let the "
        "nodes of a job connect to each other, or write turns = false for the site"
    )


def _welcomed(place: Place, secret: str, rank: int, deadline: float) -> socket.socket:
    """A connection to a place where the driver has proved itself; OSError where it has not."""
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection(place, PATIENCE))
        end_with_peer(connection)
        end, is_proved = CallerEnd(connection, secret, place, rank), False
        while not is_proved:
            connection.settimeout(max(deadline - time.monotonic(), 1e-3))
            is_proved = end.receive()
        connection.settimeout(None)
        stack.pop_all()
        return connection


def whole_lines(received: bytes) -> tuple[list[str], bytes]:
    """The lines among what one end has received, and the part of the next one.

    Raises:
        ValueError: one is too long, or no text.
    """
    *lines, part = received.split(b"\n")
    if len(part) > LONGEST:
        raise ValueError(f"a line has more than {LONGEST:,} bytes")
    return [line.decode() for line in lines], part


def end_with_peer(connection: socket.socket) -> None:
    """Have reads and writes fail soon after the node at the other end is lost; send at once."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE - 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE * 1000)
