"""A launch's command and an agent that answers at the worst moment: nothing is lost sight of.

The agent is ours, with the answers of the real one; test_inside.py speaks with that.
"""

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from experiments.emulation import inside_guest as in_guest
from experiments.emulation.guest_agent import DELIMITER, Ended, GuestLost
from experiments.environments import vm

COMMAND = "/usr/bin/setsid"  # how a launch's command begins in the guest; all else is a shell's
PATIENCE = 30.0  # seconds
LOG = 1  # handle of the file with what the command says

Meddle = Callable[[str, dict[str, Any]], dict[str, Any] | None]


class Agent:
    """Answers one client as qemu-ga does; its commands run until they are killed.

    Attributes:
        meddle: sees each request first, which waits for it; what it returns is the answer.
        lines: what the guest's shell was given, in order.
        says: what the command's log holds at each look, as if it had no end.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.lines, self.says = path, list[str](), b""
        self.meddle: Future[Meddle] = Future()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._ended: dict[int, int] = {}
        self._last = 100
        self.command = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with self._listener, connection, contextlib.suppress(ConnectionResetError):
            for line in connection.makefile("rb"):
                asked = json.loads(line.removeprefix(DELIMITER))
                answer = self._answer(asked["execute"], asked["arguments"])
                begin = DELIMITER if asked["execute"] == "guest-sync-delimited" else b""
                connection.sendall(begin + json.dumps(answer).encode() + b"\n")

    def _answer(self, name: str, asked: dict[str, Any]) -> dict[str, Any]:
        meddled = self.meddle.result()(name, asked)
        return meddled or {"return": getattr(self, name.replace("-", "_"))(asked)}

    def guest_sync_delimited(self, asked: dict[str, Any]) -> Any:
        return asked["id"]

    def guest_exec(self, asked: dict[str, Any]) -> Any:
        self._last += 1
        if asked["path"] == COMMAND:
            self.command = self._last
        else:
            self.lines.append(asked["arg"][-1])
            self._ended[self._last] = 0
            if self.lines[-1] == f"kill -s 15 -- -{self.command}":
                self._ended[self.command] = -signal.SIGTERM
        return {"pid": self._last}

    def guest_exec_status(self, asked: dict[str, Any]) -> Any:
        if asked["pid"] not in self._ended:
            return {"exited": False}
        code = self._ended.pop(asked["pid"])
        return {"exited": True, **({"signal": -code} if code < 0 else {"exitcode": code})}

    def guest_file_open(self, asked: dict[str, Any]) -> Any:
        return LOG if asked["path"].endswith(".log") else LOG + 1

    def guest_file_seek(self, asked: dict[str, Any]) -> Any:
        return {"position": asked["offset"], "eof": False}

    def guest_file_read(self, asked: dict[str, Any]) -> Any:
        output = self.says[: asked["count"]] if asked["handle"] == LOG else b""
        return {
            "count": len(output),
            "buf-b64": base64.b64encode(output).decode(),
            "eof": not output,
        }

    def guest_file_write(self, asked: dict[str, Any]) -> Any:
        return {"count": len(base64.b64decode(asked["buf-b64"])), "eof": False}

    def guest_file_close(self, asked: dict[str, Any]) -> Any:
        return {}


def refusal(why: str) -> dict[str, Any]:
    return {"error": {"class": "GenericError", "desc": why}}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "agent")


@pytest.fixture
def inside(agent: Agent, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A command with a line after it, under way."""
    folder = tmp_path / "launch"
    folder.mkdir()
    (folder / "launch.json").write_text("{}")
    words = vm.inside(agent.path, folder, ["sleep", "987"], "--after", "the line after").argv
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_while_the_command_starts_it_ends_the_command(
    agent: Agent, inside: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    def meddle(name: str, asked: dict[str, Any]) -> None:
        if name == "guest-exec" and asked["path"] == COMMAND:
            inside.send_signal(number)

    agent.meddle.set_result(meddle)
    assert inside.wait(PATIENCE) == 128 + signal.SIGTERM
    assert f"kill -s 15 -- -{agent.command}" in agent.lines
    assert "the line after" in agent.lines
    assert inside.stderr is not None and inside.stderr.read() == ""


def test_told_to_end_when_the_command_has_ended_it_ends_as_that_did(
    agent: Agent, inside: "subprocess.Popen[str]"
) -> None:
    asked_before = []

    def meddle(name: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        if name != "guest-exec-status" or asked["pid"] != agent.command:
            return None
        if asked_before:  # the real one forgets a process after it reported its end
            return refusal(f"Invalid parameter 'pid': PID {agent.command} does not exist")
        asked_before.append(asked)
        inside.send_signal(signal.SIGTERM)
        return {"return": {"exited": True, "exitcode": 3}}

    agent.meddle.set_result(meddle)
    assert inside.wait(PATIENCE) == 3
    assert "the line after" in agent.lines
    assert inside.stderr is not None and inside.stderr.read() == ""


@pytest.mark.parametrize("request_", ["guest-file-open", "guest-file-write"])
def test_a_guest_without_room_is_reported_in_a_line(
    agent: Agent, inside: "subprocess.Popen[str]", request_: str
) -> None:
    def meddle(name: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        return refusal("No space left on device") if name == request_ else None

    agent.meddle.set_result(meddle)
    assert inside.wait(PATIENCE) == os.EX_UNAVAILABLE
    assert inside.stderr is not None
    assert inside.stderr.read() == f"the guest refuses {request_}: No space left on device\n"


def test_a_command_that_says_more_than_can_be_read_is_heard_and_ended(
    agent: Agent, inside: "subprocess.Popen[str]"
) -> None:
    agent.says = b"y\n" * 2**18
    agent.meddle.set_result(lambda name, asked: None)
    assert inside.stdout is not None
    for _ in range(2**21):  # several looks
        assert inside.stdout.readline() == "y\n"
    inside.terminate()
    for line in inside.stdout:
        assert line == "y\n"
    assert inside.wait(PATIENCE) == 128 + signal.SIGTERM
    assert f"kill -s 15 -- -{agent.command}" in agent.lines


def test_a_terminal_shows_escape_sequences_of_a_guest_and_does_not_obey_them(
    agent: Agent, inside: "subprocess.Popen[str]"
) -> None:
    agent.says = "\x1b]0;title\x07 Größe\n".encode() * 2**14
    agent.meddle.set_result(lambda name, asked: None)
    assert inside.stdout is not None
    assert inside.stdout.readline() == "\\x1b]0;title\\x07 Größe\n"
    inside.terminate()
    inside.stdout.buffer.read()  # PYTHONUNBUFFERED=1 and a signal may cut the last character
    assert inside.wait(PATIENCE) == 128 + signal.SIGTERM


def test_so_does_it_with_a_guests_reasons(agent: Agent, inside: "subprocess.Popen[str]") -> None:
    agent.meddle.set_result(
        lambda name, asked: refusal("\x1b[2J") if name == "guest-file-open" else None
    )
    assert inside.wait(PATIENCE) == os.EX_UNAVAILABLE
    assert inside.stderr is not None
    assert inside.stderr.read() == "the guest refuses guest-file-open: \\x1b[2J\n"


class LyingGuest:
    """An agent that names these files, each as long as it may be."""

    def __init__(self, names: str) -> None:
        self.names, self.patiences = names, list[float]()

    def run(self, *words: str) -> Ended:
        return Ended(0, self.names if "find" in words[-1] else "")

    def read(self, path: str, most: int, offset: int = 0, patience: float = 60.0) -> bytes:
        return b"from the guest"[:most]

    @contextlib.contextmanager
    def within(self, patience: float) -> Iterator[None]:
        self.patiences.append(patience)
        yield


def fetch(names: str, folder: Path) -> LyingGuest:
    guest: Any = LyingGuest(names)
    in_guest._fetch(guest, folder, "/launch/0000-vm-plain", set())
    return guest


def test_a_guest_writes_into_the_launchs_folder_alone(tmp_path: Path) -> None:
    with pytest.raises(GuestLost, match=r"names '\.\./\.\./outside', which is no file of a launch"):
        fetch("result.json\n../../outside\n", tmp_path)
    assert not (tmp_path / "../../outside").exists()


def test_all_files_of_a_guest_together_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_guest, "MOST_FILES", 28)
    assert fetch("one\ntwo\n", tmp_path).patiences == [in_guest.FETCH_PATIENCE]
    with pytest.raises(GuestLost, match=r"more than 28 bytes, .* the last one is more"):
        fetch("one\ntwo\nmore\n", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
