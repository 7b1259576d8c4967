"""Conversations with the agent of a real guest, and with one that lies or never ends."""

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.emulation import guest_agent
from experiments.emulation.boot import Guest
from experiments.emulation.guest_agent import Agent, GuestLost


@pytest.mark.container
@pytest.mark.timeout(600)
class TestInAGuest:
    def test_a_command_ends_with_its_code_and_both_its_outputs(self, plain: Guest) -> None:
        with plain.agent() as connection:
            ended = connection.run("/bin/sh", "-c", "echo one; echo two >&2; exit 7")
        assert (ended.code, sorted(ended.output.split())) == (7, ["one", "two"])

    def test_a_killed_command_tells_its_signal(self, plain: Guest) -> None:
        with plain.agent() as connection:
            assert connection.run("/bin/sh", "-c", "kill -9 $$").code == -9

    def test_a_file_comes_back_as_it_was_brought(self, plain: Guest) -> None:
        content = bytes(range(256)) * 8192  # two messages long
        with plain.agent() as connection:
            connection.write("/tmp/content", content)
            assert connection.read("/tmp/content", 2**22) == content
            assert connection.read("/tmp/content", 2**22, len(content) - 3) == content[-3:]
            assert connection.read("/tmp/content", 5) == content[:5]

    def test_a_missing_file_has_no_content(self, plain: Guest) -> None:
        with plain.agent() as connection:
            assert connection.read("/no/such/file", 1) is None

    def test_half_a_request_of_another_client_is_forgotten(self, plain: Guest) -> None:
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(plain.socket))
            other.sendall(b'{"execute": "guest-inf')
        with plain.agent() as connection:
            assert connection.run("/bin/echo", "well").output == "well\n"

    def test_a_command_that_does_not_end_is_told(self, plain: Guest) -> None:
        with plain.agent() as connection, pytest.raises(GuestLost, match="sleep 9 did not end"):
            connection.run("/bin/sleep", "9", patience=0.3)


def test_where_nobody_listens_there_is_no_guest(tmp_path: Path) -> None:
    with (
        pytest.raises(GuestLost, match="nobody listens"),
        guest_agent.connected(tmp_path / "none", 0.2),
    ):
        pass


def test_a_guest_that_is_silent_or_closes_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(2)
        with pytest.raises(GuestLost, match="does not answer"), guest_agent.connected(path, 0.3):
            pass
        listener.accept()[0].close()
        closer = threading.Thread(target=lambda: listener.accept()[0].close())
        closer.start()
        with pytest.raises(GuestLost, match="gone"), guest_agent.connected(path, 2.0):
            pass
        closer.join()


@contextlib.contextmanager
def hostile(answer: Callable[[str], Iterator[bytes]]) -> Iterator[Agent]:
    """A client of an agent that answers each request with these bytes."""
    ours, guests = socket.socketpair()

    def serve() -> None:
        with guests, contextlib.suppress(OSError):
            for line in guests.makefile("rb"):
                for part in answer(json.loads(line)["execute"]):
                    guests.sendall(part)

    thread = threading.Thread(target=serve)
    thread.start()
    with ours:
        yield Agent(ours)
    thread.join(5.0)
    assert not thread.is_alive()


def returned(value: Any) -> bytes:
    return json.dumps({"return": value}).encode() + b"\n"


def chunks(content: bytes, seconds: float = 0.0) -> Callable[[str], Iterator[bytes]]:
    """An agent whose files never end, each part of which has this content and claims one byte."""

    def answer(name: str) -> Iterator[bytes]:
        if name != "guest-file-read":
            yield returned(1)
            return
        time.sleep(seconds)
        encoded = base64.b64encode(content).decode()
        yield returned({"count": 1, "buf-b64": encoded, "eof": False})

    return answer


def test_a_file_without_end_is_read_up_to_the_limit() -> None:
    with hostile(chunks(b"abc")) as connection:
        assert connection.read("/tmp/x", 6) == b"abcabc"


def test_more_bytes_than_were_asked_for_are_refused() -> None:
    refused = pytest.raises(GuestLost, match="sent 101 bytes of /tmp/x, and 100 were asked for")
    with hostile(chunks(b"x" * 101)) as connection, refused:
        connection.read("/tmp/x", 100)


@pytest.mark.timeout(20)
def test_all_parts_of_a_file_have_one_deadline() -> None:
    began = time.monotonic()
    lost = pytest.raises(GuestLost, match="does not answer")
    with hostile(chunks(b"x", 0.05)) as connection, lost:
        connection.read("/tmp/x", 2**20, patience=0.3)
    assert time.monotonic() - began < 3.0


def test_an_outer_deadline_holds_for_what_is_within() -> None:
    lost = pytest.raises(GuestLost, match="does not answer")
    with hostile(chunks(b"x", 0.05)) as connection, lost, connection.within(0.3):
        connection.read("/tmp/x", 2**20)


@pytest.mark.timeout(20)
def test_an_answer_without_end_is_cut_off() -> None:
    def answer(name: str) -> Iterator[bytes]:
        while True:
            yield b"x" * 2**16

    with hostile(answer) as connection, pytest.raises(GuestLost, match="more than 4,194,304 bytes"):
        connection.read("/tmp/x", 1)
    assert len(connection._unread) < 2**23


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b"7",
        b"{}",
        b'{"error": 7}',
        *(b'{"return": %s}' % value for value in (b"null", b"[]", b'"\\u001b[2J"', b"Infinity")),
        b'{"return": {"pid": "x", "exited": true, "exitcode": []}}',
    ],
    ids=lambda line: line[:20],
)
def test_an_answer_of_another_form_is_one_line_about_the_guest(line: bytes) -> None:
    for ask in (lambda agent: agent.start(["true"]), lambda agent: agent.ended(1)):
        lost = pytest.raises(GuestLost, match=r"answers guest-exec.* with b['\"].*no answer to it")
        with hostile(lambda name: iter([line + b"\n"])) as connection, lost:
            ask(connection)
