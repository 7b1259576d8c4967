"""Ranks that can read the launch's folder are connected, by an address that answers; no other."""

import contextlib
import errno
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any, NoReturn

import pytest

from experiments.jobs import sockets
from experiments.jobs.sockets import NodeLost, Sockets
from experiments.measure import lines
from experiments.measure.lines import LISTENER
from experiments.model.errors import ExperimentsError
from hbmcomm.authentication import CallerEnd

HERE = ("127.0.0.1", 0)
LATE = 30.0  # seconds: far more than a busy machine needs, far less than a stranger may take


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Sockets]:
    with Sockets(tmp_path, 1) as made:
        yield made


Place = tuple[str, int]


def listener(folder: Path) -> dict[str, Any]:
    """What the driver has written."""
    announced: dict[str, Any] = json.loads((folder / LISTENER).read_text())
    return announced


def loopback(folder: Path) -> Place:
    """Where the driver listens for ranks on its own node."""
    address, port = listener(folder)["places"][-1]
    assert address == "127.0.0.1"
    return address, port


def announce(folder: Path, *places: Place) -> None:
    """Have ranks find the driver at other places."""
    (folder / LISTENER).write_text(json.dumps(listener(folder) | {"places": places}))


def echo(folder: Path) -> threading.Thread:
    """Rank 0, in a thread: it sends back what it reads first."""

    def run() -> None:
        with lines.opened(folder, 0) as (orders, answers):
            answers.write(orders.readline())
            answers.flush()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def connected(ends: Sockets, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not ends.connect():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_the_secrets_can_be_read_by_their_user_alone(ends: Sockets, tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / LISTENER).stat().st_mode) == 0o600


def test_the_secrets_go_through_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    for number, lead in enumerate((Path.symlink_to, Path.hardlink_to)):
        folder = tmp_path / str(number)
        folder.mkdir()
        lead(folder / LISTENER, precious)
        with Sockets(folder, 1):
            assert listener(folder)["secret"]
    assert precious.read_text() == "as it was"


def test_the_driver_listens_at_announced_addresses_alone(ends: Sockets, tmp_path: Path) -> None:
    places = listener(tmp_path)["places"]
    assert [address for address, _ in places] == sockets.addresses()
    for address, port in places:
        socket.create_connection((address, port), 5.0).close()
        with pytest.raises(ConnectionRefusedError):  # what listens everywhere is here as well
            socket.create_connection(("127.0.0.2", port), 5.0)


def test_no_address_that_has_gone_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "addresses", lambda: ["192.0.2.1", "127.0.0.1"])
    with Sockets(tmp_path, 1):
        loopback(tmp_path)
        assert len(listener(tmp_path)["places"]) == 1
    monkeypatch.setattr(sockets, "addresses", lambda: ["192.0.2.1"])
    with pytest.raises(ExperimentsError, match=r"no network interface .*or write turns = false"):
        Sockets(tmp_path, 1)


def test_an_address_where_nobody_answers_is_passed_by(
    ends: Sockets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PATIENCE", 0.2)
    announce(tmp_path, ("192.0.2.1", 9), loopback(tmp_path))  # the first is one of TEST-NET-1
    thread = echo(tmp_path)
    assert connected(ends)
    ends.send("an order\n")
    assert ends.receive(5.0) == ["an order"]
    thread.join(5.0)
    with pytest.raises(BrokenPipeError, match="rank 0 has ended"):
        ends.receive(5.0)


def test_strangers_and_ranks_of_other_launches_are_sent_away(ends: Sockets, tmp_path: Path) -> None:
    """One who shows the secret itself, too."""
    place, secret = loopback(tmp_path), listener(tmp_path)["secret"]
    for hello in (b"", b"{}\n", b"x" * 300, secret.encode() * 2):
        with socket.create_connection(place, 5.0) as stranger:
            stranger.sendall(hello)
            stranger.shutdown(socket.SHUT_WR)
            assert not connected(ends, 0.2), hello
            with contextlib.suppress(ConnectionResetError):
                assert len(stranger.recv(100)) == 32 and stranger.recv(100) == b""
    for rank in (1, 2**32 - 1):
        with socket.create_connection(place, 5.0) as caller:
            end = CallerEnd(caller, secret, place, rank)
            assert not connected(ends, 0.05) and not end.receive()
            assert not connected(ends, 0.05), rank
            with pytest.raises(ConnectionResetError):
                end.receive()
    echo(tmp_path)
    assert connected(ends)


def test_a_stranger_that_a_rank_calls_cannot_replace_it(ends: Sockets, tmp_path: Path) -> None:
    """It hands on the driver's challenge, and the rank's answer at once."""
    place, secret = loopback(tmp_path), listener(tmp_path)["secret"]
    with (
        socket.create_server(HERE) as between,
        socket.create_connection(place, 5.0) as stranger,
        socket.create_connection(between.getsockname(), 5.0) as rank,
    ):
        called, _ = between.accept()
        with called:
            assert not ends.connect()
            called.sendall(stranger.recv(100))
            CallerEnd(rank, secret, between.getsockname(), 0).receive()
            stranger.sendall(called.recv(100))
        assert not connected(ends, 0.1)
        assert stranger.recv(100) == b""
    echo(tmp_path)
    assert connected(ends)


def test_many_ranks_can_connect_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than there may be strangers."""
    monkeypatch.setattr(sockets, "CALLERS", 2)
    with Sockets(tmp_path, 16) as ends, contextlib.ExitStack() as stack:
        place, secret = loopback(tmp_path), listener(tmp_path)["secret"]
        callers = [stack.enter_context(socket.create_connection(place)) for _ in range(16)]
        assert not ends.connect()
        for rank, caller in enumerate(callers):
            assert not CallerEnd(caller, secret, place, rank).receive()
        assert connected(ends)


def test_strangers_who_say_little_hold_up_neither_the_driver_nor_a_rank(
    ends: Sockets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "CALLERS", 8)
    monkeypatch.setattr(sockets, "PATIENCE", 2 * LATE)
    place = loopback(tmp_path)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(place)) for _ in range(20)]
        for stranger in silent:
            stranger.send(b"x")
        began = time.monotonic()
        assert not ends.connect()
        assert time.monotonic() - began < LATE
        echo(tmp_path)
        assert connected(ends, LATE)


def test_a_stranger_has_one_deadline_for_all_that_it_says(
    ends: Sockets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "PATIENCE", 0.2)
    place = loopback(tmp_path)
    refused = threading.Event()

    def drip() -> None:
        deadline = time.monotonic() + 3.0
        with socket.create_connection(place) as stranger:
            while time.monotonic() < deadline and not refused.is_set():
                try:
                    stranger.send(b"x")
                except ConnectionError:
                    refused.set()
                time.sleep(0.02)

    thread = threading.Thread(target=drip)
    thread.start()
    while thread.is_alive():
        assert not connected(ends, 0.05)
    assert refused.is_set()


def test_a_rank_that_cannot_reach_the_driver_says_what_it_tried(tmp_path: Path) -> None:
    with Sockets(tmp_path, 1):
        pass  # nobody listens any more
    announce(tmp_path, loopback(tmp_path))
    expected = "rank 0 cannot reach the driver .*127.0.0.1: .*refused.*or write turns = false"
    with pytest.raises(SystemExit, match=expected), lines.opened(tmp_path, 0):
        pass


def drip(stranger: socket.socket, text: bytes) -> None:
    """Answer whoever connects with a byte now and then."""
    with contextlib.suppress(OSError):
        connection, _ = stranger.accept()
        with connection:
            for byte in text:
                connection.sendall(bytes([byte]))
                time.sleep(0.01)


@pytest.mark.parametrize("text", [b"", b"x" * 10, b"x" * 32, b"x" * 100])
def test_a_stranger_in_the_place_of_the_driver_gives_no_orders_and_holds_up_no_rank(
    ends: Sockets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    """It takes its time with a challenge and an answer."""
    monkeypatch.setattr(lines, "WELCOME_PATIENCE", 1.0)
    with socket.create_server(HERE) as stranger:
        announce(tmp_path, stranger.getsockname())
        thread = threading.Thread(target=drip, args=(stranger, text), daemon=True)
        thread.start()
        began = time.monotonic()
        with pytest.raises(SystemExit, match=r"reach the driver .*(secret|timed out|closed|reset)"):
            lines.opened(tmp_path, 0).__enter__()
        assert time.monotonic() - began < 3.0
    thread.join(5.0)


def test_a_rank_waits_no_longer_than_its_deadline_for_a_driver_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "WELCOME_PATIENCE", 0.2)
    expected = "rank 0 cannot reach the driver .*timed out"
    with Sockets(tmp_path, 1), pytest.raises(SystemExit, match=expected):
        lines.opened(tmp_path, 0).__enter__()


def test_a_node_that_no_longer_answers_is_no_rank_that_ends(
    ends: Sockets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = echo(tmp_path)
    assert connected(ends)
    ends.send("an order\n")
    thread.join(5.0)
    for number, expected in (
        (errno.ETIMEDOUT, NodeLost),
        (errno.EHOSTUNREACH, NodeLost),
        (errno.ECONNRESET, ConnectionResetError),
    ):

        def fail(*arguments: Any, number: int = number) -> NoReturn:
            raise OSError(number, os.strerror(number))

        acts = {"recv": lambda: ends.receive(5.0), "sendall": lambda: ends.send("x")}
        for name, act in acts.items():
            monkeypatch.setattr(socket.socket, name, fail, raising=False)
            with pytest.raises(expected):
                act()


def test_the_addresses_are_those_of_this_machine_and_loopback_comes_last() -> None:
    addresses = sockets.addresses()
    assert addresses[-1] == "127.0.0.1"
    for address in addresses:
        assert re.fullmatch(r"[0-9.]+", address)
        socket.create_server((address, 0)).close()


@pytest.mark.parametrize(("allowed", "ending"), [(200, "True"), (50, "may open 50: raise the")])
def test_a_rank_has_an_open_file(allowed: int, ending: str, tmp_path: Path) -> None:
    """Of a soft limit of 50, the process may go to its hard limit."""
    program = f"""
import json, resource, socket, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (50, {allowed}))
from experiments.jobs.sockets import Sockets
folder = Path(sys.argv[1])
with Sockets(folder, 60) as ends:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        while not ends.connect():
            time.sleep(0.01)
        print(True)
    except Exception as error:
        print(error)
"""
    words = [sys.executable, "-c", program, str(tmp_path)]
    with (
        subprocess.Popen(words, stdin=PIPE, stdout=PIPE, text=True) as driver,
        contextlib.ExitStack() as stack,
    ):
        assert driver.stdout is not None and driver.stdout.readline() == "ready\n"
        secret, place = listener(tmp_path)["secret"], loopback(tmp_path)
        callers = [stack.enter_context(socket.create_connection(place, 5.0)) for _ in range(60)]
        assert driver.stdin is not None
        driver.stdin.write("go\n")
        driver.stdin.flush()
        with contextlib.suppress(ConnectionError):  # the driver has given up
            for rank, connection in enumerate(callers):
                CallerEnd(connection, secret, place, rank).receive()
        output, _ = driver.communicate(timeout=60)
    assert ending in output
