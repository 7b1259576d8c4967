"""Client of qemu-guest-agent: starts commands in a guest, reads and writes small files there.

The agent serves one connection at a time. Knows no launch and no machine.
Source: the QEMU Guest Agent Protocol Reference.
"""

import base64
import contextlib
import json
import math
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.model.errors import ExperimentsError

DELIMITER = b"\xff"  # makes the agent drop a request that an earlier client cut short
CHUNK = 2**20  # bytes of a file in one message
ANSWER_PATIENCE = 60.0  # seconds for one answer of a busy guest
POLL = 0.1  # seconds
LINE = 2**16


class GuestLost(ExperimentsError):
    """The guest does not answer."""


class Refused(ExperimentsError):
    """The agent refuses; the text holds its reason."""


@dataclass(frozen=True)
class Ended:
    """The exit code of a command in the guest, and its output, errors included."""

    code: int
    output: str


class Agent:
    """An open connection to the agent; greet() comes first."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""

    def start(self, words: Sequence[str], capture: bool = False) -> int:
        """Start a command as root, with the agent's environment; its PID in the guest.

        Args:
            words: the program's path or name, then its arguments.
            capture: keep its output for ended().
        """
        command = {"path": words[0], "arg": list(words[1:]), "capture-output": capture}
        return int(self._ask("guest-exec", command)["pid"])

    def ended(self, process: int) -> Ended | None:
        """How a started command ended, None while it runs. The agent answers once after its end."""
        status = self._ask("guest-exec-status", {"pid": process})
        if not status["exited"]:
            return None
        output = [base64.b64decode(status.get(part, "")) for part in ("out-data", "err-data")]
        code = status["exitcode"] if "exitcode" in status else -status.get("signal", 1)
        return Ended(code, b"".join(output).decode(errors="replace"))

    def run(self, *words: str, patience: float = ANSWER_PATIENCE) -> Ended:
        """Run a command to its end.

        Raises:
            GuestLost: it does not end in time.
        """
        process, deadline = self.start(words, capture=True), time.monotonic() + patience
        while (found := self.ended(process)) is None:
            if time.monotonic() > deadline:
                raise GuestLost(f"{' '.join(words)} did not end in the guest in {patience:.0f} s")
            time.sleep(POLL)
        return found

    def read(self, path: str, offset: int = 0, most: float = math.inf) -> bytes | None:
        """A file of the guest from an offset on; None if it cannot be opened.

        Args:
            most: bytes at which reading stops, after a whole message; for a file that grows.
        """
        try:
            handle = self._open(path, "rb")
        except Refused:
            return None
        parts, got = [], 0
        with self._closing(handle):
            if offset:
                position = {"handle": handle, "offset": offset, "whence": "set"}
                self._ask("guest-file-seek", position)
            while got < most:
                chunk = self._ask("guest-file-read", {"handle": handle, "count": CHUNK})
                parts.append(base64.b64decode(chunk["buf-b64"]))
                got += chunk["count"]
                if chunk["eof"] or not chunk["count"]:
                    break
        return b"".join(parts)

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a file of the guest, as root. Refused if there is no room."""
        handle = self._open(path, "wb")
        with self._closing(handle):
            for start in range(0, len(content), CHUNK):
                chunk = base64.b64encode(content[start : start + CHUNK]).decode()
                self._ask("guest-file-write", {"handle": handle, "buf-b64": chunk})

    def _open(self, path: str, mode: str) -> int:
        return int(self._ask("guest-file-open", {"path": path, "mode": mode}))

    @contextlib.contextmanager
    def _closing(self, handle: int) -> Iterator[None]:
        try:
            yield
        finally:
            self._ask("guest-file-close", {"handle": handle})

    def greet(self, patience: float) -> None:
        """Wait until the agent answers, and drop answers to earlier clients."""
        token = secrets.randbelow(2**31)
        self._send(DELIMITER + _request("guest-sync-delimited", {"id": token}))
        deadline = time.monotonic() + patience
        while self._line(deadline).rpartition(DELIMITER)[2] != b'{"return": %d}' % token:
            pass

    def _ask(self, name: str, arguments: dict[str, Any]) -> Any:
        self._send(_request(name, arguments))
        answer = json.loads(self._line(time.monotonic() + ANSWER_PATIENCE))
        if "error" in answer:
            raise Refused(
                f"the guest refuses {name}: {answer['error'].get('desc', answer['error'])}"
            )
        return answer["return"]

    def _send(self, message: bytes) -> None:
        try:
            self._connection.sendall(message)
        except OSError as error:
            raise GuestLost(f"the guest is gone ({error})") from None

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._unread:
            self._connection.settimeout(max(deadline - time.monotonic(), 0.01))
            try:
                more = self._connection.recv(LINE)
            except TimeoutError:
                raise GuestLost("the guest does not answer") from None
            except OSError as error:
                raise GuestLost(f"the guest is gone ({error})") from None
            if not more:
                raise GuestLost("the guest is gone")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line


@contextlib.contextmanager
def connected(path: Path, patience: float = ANSWER_PATIENCE) -> Iterator[Agent]:
    """A connection to the agent at a socket, once it has answered.

    Raises:
        GuestLost: there is no answer in time.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        deadline = time.monotonic() + patience
        while True:
            try:
                connection.connect(str(path))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    raise GuestLost(f"nobody listens at {path}") from None
                time.sleep(POLL)
        agent = Agent(connection)
        agent.greet(max(deadline - time.monotonic(), POLL))
        yield agent


def _request(name: str, arguments: dict[str, Any]) -> bytes:
    return json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n"
