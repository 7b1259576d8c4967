"""Real conversations with the agent of a real guest."""

import socket
import threading
from pathlib import Path

import pytest

from experiments.guests import agent
from experiments.guests.agent import GuestLost
from experiments.guests.boot import Guest


@pytest.mark.container
@pytest.mark.timeout(600)
class TestInAGuest:
    def test_a_command_ends_with_its_code_and_both_its_outputs(self, plain: Guest) -> None:
        with plain.agent() as connection:
            found = connection.run("/bin/sh", "-c", "echo one; echo two >&2; exit 7")
        assert (found.code, sorted(found.output.split())) == (7, ["one", "two"])

    def test_a_killed_command_tells_its_signal(self, plain: Guest) -> None:
        with plain.agent() as connection:
            assert connection.run("/bin/sh", "-c", "kill -9 $$").code == -9

    def test_a_file_comes_back_as_it_was_brought(self, plain: Guest) -> None:
        content = bytes(range(256)) * 8192  # two messages long
        with plain.agent() as connection:
            connection.write("/tmp/content", content)
            assert connection.read("/tmp/content") == content
            assert connection.read("/tmp/content", len(content) - 3) == content[-3:]

    def test_a_missing_file_has_no_content(self, plain: Guest) -> None:
        with plain.agent() as connection:
            assert connection.read("/no/such/file") is None

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
    with pytest.raises(GuestLost, match="nobody listens"), agent.connected(tmp_path / "none", 0.2):
        pass


def test_a_guest_that_is_silent_or_closes_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(2)
        with pytest.raises(GuestLost, match="does not answer"), agent.connected(path, 0.3):
            pass
        listener.accept()[0].close()
        closer = threading.Thread(target=lambda: listener.accept()[0].close())
        closer.start()
        with pytest.raises(GuestLost, match="gone"), agent.connected(path, 2.0):
            pass
        closer.join()
