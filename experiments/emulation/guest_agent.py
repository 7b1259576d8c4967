"""Client of qemu-guest-agent: starts commands in a guest, reads and writes small files there.

The agent serves one connection at a time. A guest may answer anything, for ever: each answer has a
size limit and a form, and a deadline covers all answers of a read. Knows no launch and no machine.
Source: the QEMU Guest Agent Protocol Reference.
"""

import base64
import contextlib
import json
import math
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from experiments.model.errors import ExperimentsError

DELIMITER = b"\xff"  # makes the agent drop a request that an earlier client cut short
CHUNK = 2**20  # bytes of a file in one message
ANSWER_PATIENCE = 60.0  # seconds for one answer of a busy guest
POLL = 0.1  # seconds
RECEIVED = 2**16  # bytes taken from the socket at once
LONGEST = 2**22  # bytes of an answer; one with CHUNK bytes of a file has 1.4 MB
SHOWN = 80  # characters of a wrong answer, in an error

WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading an answer of another form raises."""

Read = TypeVar("Read")


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
        self._unread = bytearray()
        self._deadline = math.inf

    @contextlib.contextmanager
    def within(self, patience: float) -> Iterator[None]:
        """Give all answers in the block together so many seconds; an outer block may give less.

        Raises:
            GuestLost: one comes too late.
        """
        outer = self._deadline
        self._deadline = min(outer, time.monotonic() + patience)
        try:
            yield
        finally:
            self._deadline = outer

    def start(self, words: Sequence[str], capture: bool = False) -> int:
        """Start a command as root, with the agent's environment; its PID in the guest.

        Args:
            words: the program's path or name, then its arguments.
            capture: keep its output for ended().
        """
        command = {"path": words[0], "arg": list(words[1:]), "capture-output": capture}
        return self._ask("guest-exec", command, lambda answer: int(answer["pid"]))

    def ended(self, process: int) -> Ended | None:
        """How a started command ended, None while it runs. The agent answers once after its end."""

        def end(status: Any) -> Ended | None:
            if not status["exited"]:
                return None
            output = [base64.b64decode(status.get(part, "")) for part in ("out-data", "err-data")]
            code = int(status["exitcode"] if "exitcode" in status else -status.get("signal", 1))
            return Ended(code, b"".join(output).decode(errors="replace"))

        return self._ask("guest-exec-status", {"pid": process}, end)

    def run(self, *words: str, patience: float = ANSWER_PATIENCE) -> Ended:
        """Run a command to its end.

        Raises:
            GuestLost: it does not end in time.
        """
        process, deadline = self.start(words, capture=True), time.monotonic() + patience
        while (ended := self.ended(process)) is None:
            if time.monotonic() > deadline:
                raise GuestLost(f"{' '.join(words)} did not end in the guest in {patience:.0f} s")
            time.sleep(POLL)
        return ended

    def read(
        self, path: str, most: int, offset: int = 0, patience: float = ANSWER_PATIENCE
    ) -> bytes | None:
        """The bytes of a guest's file from an offset on; None if it cannot be opened.

        Args:
            most: bytes at which reading stops; the file may be longer.
            patience: seconds for all of it.

        Raises:
            GuestLost: it takes longer, or the guest sends more than was asked for.
        """
        with self.within(patience):
            try:
                handle = self._open(path, "rb")
            except Refused:
                return None
            content = bytearray()
            with self._closing(handle):
                if offset:
                    position = {"handle": handle, "offset": offset, "whence": "set"}
                    self._ask("guest-file-seek", position)
                while len(content) < most:
                    count = min(CHUNK, most - len(content))
                    asked = {"handle": handle, "count": count}
                    chunk, is_end = self._ask("guest-file-read", asked, _chunk)
                    if len(chunk) > count:
                        raise GuestLost(
                            f"the guest sent {len(chunk):,} bytes of {path}, and {count:,} were "
                            "asked for: start it again"
                        )
                    content += chunk
                    if is_end or not chunk:
                        break
        return bytes(content)

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a file of the guest, as root. Refused if there is no room."""
        handle = self._open(path, "wb")
        with self._closing(handle):
            for start in range(0, len(content), CHUNK):
                chunk = base64.b64encode(content[start : start + CHUNK]).decode()
                self._ask("guest-file-write", {"handle": handle, "buf-b64": chunk})

    def _open(self, path: str, mode: str) -> int:
        return self._ask("guest-file-open", {"path": path, "mode": mode}, int)

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

    def _ask(
        self,
        name: str,
        arguments: dict[str, Any],
        read: Callable[[Any], Read] = lambda answer: answer,
    ) -> Read:
        """What `read` makes of the answer to a request.

        Raises:
            GuestLost: no answer comes in time, or one of another form.
            Refused: the agent refuses.
        """
        self._send(_request(name, arguments))
        line = self._line(self._soon())
        try:
            answer = json.loads(line)
            if "error" not in answer:
                return read(answer["return"])
            reason = answer["error"].get("desc", answer["error"])
        except WRONG as error:
            raise GuestLost(
                f"the guest answers {name} with {line[:SHOWN]!r}, which is no answer to it: "
                "start it again"
            ) from error
        raise Refused(f"the guest refuses {name}: {reason}")

    def _send(self, message: bytes) -> None:
        try:
            self._connection.settimeout(_left(self._soon()))
            self._connection.sendall(message)
        except TimeoutError:
            raise GuestLost("the guest does not answer") from None
        except OSError as error:
            raise GuestLost(f"the guest is gone ({error})") from None

    def _soon(self) -> float:
        """When the next answer must be there."""
        return min(time.monotonic() + ANSWER_PATIENCE, self._deadline)

    def _line(self, deadline: float) -> bytes:
        """The next line; a guest that sends parts of one for ever is lost, too."""
        while (end := self._unread.find(b"\n")) < 0:
            if len(self._unread) > LONGEST:
                raise GuestLost(
                    f"the guest's answer has more than {LONGEST:,} bytes: start it again"
                )
            try:
                self._connection.settimeout(_left(deadline))
                more = self._connection.recv(RECEIVED)
            except TimeoutError:
                raise GuestLost("the guest does not answer") from None
            except OSError as error:
                raise GuestLost(f"the guest is gone ({error})") from None
            if not more:
                raise GuestLost("the guest is gone")
            self._unread += more
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
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


def _left(deadline: float) -> float:
    """Seconds until then; TimeoutError when there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _chunk(answer: Any) -> tuple[bytes, bool]:
    """A part of a file, and whether it is the last."""
    return base64.b64decode(answer["buf-b64"]), bool(answer["eof"])


def _request(name: str, arguments: dict[str, Any]) -> bytes:
    return json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n"
