"""Both ends of a connection prove that they know a secret, which neither of them sends.

A challenge and an answer in either direction, by HMAC-SHA256, in three messages of fixed length:
the listener's challenge; the caller's answer, with its rank and a challenge of its own; the
listener's answer. An answer is good for one connection, one direction and one place, the listener's
address and port: a recording is refused, and so is what a stranger at one place hands on to the
listener at another. What follows on the connection is neither signed nor encrypted.

A receive reads what has come, so that a listener waits for nobody; the functions of
multiprocessing.connection, which do much the same, wait.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct

Place = tuple[str, int]
"""An address and a port."""

_CHALLENGE = 32  # bytes, random
_ANSWER = 32  # bytes of SHA-256
_FROM_CALLER = struct.Struct(f">I{_CHALLENGE}s{_ANSWER}s")
"""A caller's message: its rank, its challenge, its answer."""
_CALLER, _LISTENER = b"C", b"L"  # signed, so that no end can return the answer of the other


def new_secret() -> str:
    """A secret for the ends of a job's connections, as text; hand it to them by other means."""
    return secrets.token_hex()


class _End:
    """What both ends have in common."""

    def __init__(self, connected: socket.socket, secret: str, place: Place) -> None:
        self._connected, self._secret = connected, secret.encode()
        self._place = f"{place[0]}:{place[1]}".encode()
        self._received = b""

    def _receive(self, size: int) -> bytes | None:
        """A message of this size, once all of it has come; nothing that follows is read.

        Raises:
            OSError: The other end is gone, or nothing has come (BlockingIOError, TimeoutError).
        """
        more = self._connected.recv(size - len(self._received))
        if not more:
            raise ConnectionResetError("it closed the connection")
        self._received += more
        if len(self._received) < size:
            return None
        message, self._received = self._received, b""
        return message

    def _answer(self, end: bytes, rank: int, of_listener: bytes, of_caller: bytes) -> bytes:
        """The answer of an end to the challenges; all parts but the last have a fixed length."""
        parts = end, struct.pack(">I", rank), of_listener, of_caller, self._place
        return hmac.digest(self._secret, b"".join(parts), "sha256")


class ListenerEnd(_End):
    """The end of a listener that has accepted a connection; it sends its challenge at once.

    Raises:
        OSError: The caller is gone.
    """

    def __init__(self, connected: socket.socket, secret: str) -> None:
        super().__init__(connected, secret, connected.getsockname())
        self._challenge = secrets.token_bytes(_CHALLENGE)
        self._due = b""
        connected.sendall(self._challenge)

    def receive(self) -> int | None:
        """Read what has come: the rank of a caller that has proved to know the secret, or None.

        Raises:
            ConnectionRefusedError: It does not know the secret, or tried another place.
            OSError: The caller is gone, or nothing has come (BlockingIOError, TimeoutError).
        """
        message = self._receive(_FROM_CALLER.size)
        if message is None:
            return None
        rank, challenge, answer = _FROM_CALLER.unpack(message)
        expected = self._answer(_CALLER, rank, self._challenge, challenge)
        if not hmac.compare_digest(answer, expected):
            raise ConnectionRefusedError("it does not know the secret of this job")
        self._due = self._answer(_LISTENER, rank, self._challenge, challenge)
        return int(rank)

    def welcome(self) -> None:
        """Answer the caller, once `receive` has its rank.

        Raises:
            OSError: The caller is gone.
        """
        self._connected.sendall(self._due)


class CallerEnd(_End):
    """The end of a rank that connects.

    Args:
        place: Where it connects to.
    """

    def __init__(self, connected: socket.socket, secret: str, place: Place, rank: int) -> None:
        super().__init__(connected, secret, place)
        self._rank, self._challenge = rank, secrets.token_bytes(_CHALLENGE)
        self._expected = b""

    def receive(self) -> bool:
        """Read what has come, and answer; whether the listener has proved to know the secret.

        Raises:
            ConnectionRefusedError: It does not know the secret.
            OSError: The listener is gone, or nothing has come (BlockingIOError, TimeoutError).
        """
        message = self._receive(_ANSWER if self._expected else _CHALLENGE)
        if message is None:
            return False
        if self._expected:
            if not hmac.compare_digest(message, self._expected):
                raise ConnectionRefusedError("it does not know the secret of this job")
            return True
        self._expected = self._answer(_LISTENER, self._rank, message, self._challenge)
        answer = self._answer(_CALLER, self._rank, message, self._challenge)
        self._connected.sendall(_FROM_CALLER.pack(self._rank, self._challenge, answer))
        return False
