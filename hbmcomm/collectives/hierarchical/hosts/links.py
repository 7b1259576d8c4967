"""TCP connections between processes for small notices: found by trying, checked by secrets."""

from __future__ import annotations

import json
import re
import secrets
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

_SECRET = 16  # bytes
_PATIENCE = 1.0  # seconds until an address answers, and then for each word
_BACKLOG = 4096  # connections, some for each rank of a host
_KEEPALIVE = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 4000}
"""A host that vanishes is missed after some 4 seconds; the last is in milliseconds."""

Notice = dict[str, Any]
"""`rank` and `what` it reports."""


class Listener:
    """Where one process can be reached.

    Attributes:
        offer: What others need to connect.
    """

    def __init__(self) -> None:
        """Raises OSError where this process may not listen."""
        self._socket = socket.create_server(("", 0), backlog=_BACKLOG)
        self._socket.settimeout(_PATIENCE)
        port = self._socket.getsockname()[1]
        self.offer = Offer(_addresses(), port, secrets.token_hex(_SECRET // 2), secrets.token_hex())

    def accept(self) -> Link | None:
        """The next process that connects and knows the secret; None: another one did."""
        found, _ = self._socket.accept()
        with suppress(OSError, ValueError):
            link = Link(found)
            if link.receive_word() == self.offer.asked:
                link.send_word(self.offer.answer)
                return link
        found.close()
        return None

    def close(self) -> None:
        """Accept no more."""
        self._socket.close()


class Offer(NamedTuple):
    """How to reach a listener."""

    addresses: tuple[str, ...]
    port: int
    asked: str
    answer: str
    """Another listener may have this address on another host: it does not know the answer."""


class Link:
    """A connection; `fileno` makes it fit for poll()."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._rest = connected, b""
        connected.settimeout(_PATIENCE)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for name, value in _KEEPALIVE.items():
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, notice: Notice) -> None:
        """Send a notice, if the other side still takes it."""
        with suppress(OSError):
            self._socket.sendall(json.dumps(notice).encode() + b"\n")

    def receive(self) -> Iterator[Notice]:
        """The notices that have come; call it where poll() says so.

        Raises:
            ConnectionError, TimeoutError: The other process is gone, or its host.
        """
        came = self._socket.recv(4096)
        if not came:
            raise ConnectionResetError("it closed its connection")
        *lines, self._rest = (self._rest + came).split(b"\n")
        return (json.loads(line) for line in lines)

    def send_word(self, word: str) -> None:
        self._socket.sendall(word.encode() + b"\n")

    def receive_word(self) -> str:
        """A line, read byte by byte: what follows it stays."""
        found = bytearray()
        while not found.endswith(b"\n") and len(found) < 1024:
            came = self._socket.recv(1)
            if not came:
                raise ConnectionResetError("it closed its connection")
            found += came
        return found.decode("ascii").strip()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def connect(offer: Offer) -> Link:
    """A connection to a listener: the first that knows the answer, of all its addresses at once.

    Raises:
        OSError: It cannot be reached.
    """
    for found in _connected(offer):
        with suppress(OSError, ValueError):
            link = Link(found)
            link.send_word(offer.asked)
            if link.receive_word() == offer.answer:
                return link
        found.close()
    raise ConnectionRefusedError(f"no answer at {', '.join(offer.addresses)}, port {offer.port}")


def _connected(offer: Offer) -> Iterator[socket.socket]:
    """Sockets to a listener, in the order in which its addresses answer."""
    deadline = time.monotonic() + _PATIENCE
    with selectors.DefaultSelector() as waiting:
        for address in offer.addresses:
            waiting.register(_begin(address, offer.port), selectors.EVENT_WRITE)
        try:
            while waiting.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in waiting.select(left):
                    found: Any = waiting.unregister(key.fileobj).fileobj
                    if found.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                        found.close()
                    else:
                        yield found
        finally:
            for key in waiting.get_map().values():
                key.fileobj.close()  # type: ignore[union-attr]


def _begin(address: str, port: int) -> socket.socket:
    """A socket that is being connected; it is writable when that has succeeded or failed."""
    made = socket.socket()
    made.setblocking(False)
    made.connect_ex((address, port))
    return made


def _addresses() -> tuple[str, ...]:
    """IPv4 addresses of this process's network, those of its interfaces before the loopback's."""
    try:
        text = Path("/proc/net/fib_trie").read_text("ascii")
    except OSError:
        return ("127.0.0.1",)
    found = re.findall(r"\|-- ([\d.]+)\n\s+/32 host LOCAL", text)
    return tuple(sorted(set(found), key=lambda each: (each.startswith("127."), each)))
