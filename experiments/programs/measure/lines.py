"""A rank's end of the line to the driver: pipes in the launch's folder, or TCP between nodes.

The driver makes its end before the launch starts (jobs/pipes.py, jobs/sockets.py). Where one end is
gone, a read of the other ends.
"""

import contextlib
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

ANSWERS = "answers"
"""The pipe that all answers go by."""
LISTENER = "listener.json"
"""The file with the driver's addresses, its port and the token that it wants to see."""
WELCOME = "welcome\n"
"""What a driver says to a rank that has shown the token."""
PATIENCE = 5.0  # seconds until an address answers
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
        SystemExit: the driver does not answer.
    """
    with contextlib.ExitStack() as stack:
        if (folder / LISTENER).exists():
            listener = json.loads((folder / LISTENER).read_text())
            connection = stack.enter_context(_connected(listener, rank))
            orders = stack.enter_context(connection.makefile("r"))
            if orders.readline() != WELCOME:
                raise SystemExit(f"the driver of this campaign refused rank {rank}")
            yield orders, stack.enter_context(connection.makefile("w"))
        else:
            orders = stack.enter_context((folder / pipe_of(rank)).open("r"))
            yield orders, stack.enter_context((folder / ANSWERS).open("w"))


def _connected(listener: Mapping[str, Any], rank: int) -> socket.socket:
    """A connection to the first address that answers."""
    refusals = []
    for address in listener["addresses"]:
        try:
            connection = socket.create_connection((address, listener["port"]), PATIENCE)
        except OSError as error:
            refusals.append(f"{address}: {error}")
            continue
        connection.settimeout(None)  # the driver may wait for ranks of other launches first
        end_with_peer(connection)
        hello = {"token": listener["token"], "rank": rank}
        connection.sendall((json.dumps(hello) + "\n").encode())
        return connection
    raise SystemExit(
        f"rank {rank} cannot reach the driver of this campaign at port {listener['port']} "
        f"({'; '.join(refusals)}): let the nodes of a job connect to each other, or write "
        "turns = false for the site"
    )


def end_with_peer(connection: socket.socket) -> None:
    """Have reads and writes fail soon after the node at the other end is lost; send at once."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE - 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE * 1000)
