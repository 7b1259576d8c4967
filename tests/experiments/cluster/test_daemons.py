"""A slurmd that no longer answers is noticed; one that is started again is not gone."""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from experiments.cluster import daemons
from experiments.cluster.daemons import AGAIN, IDLE, LATER, REFUSING, Daemons
from experiments.processes import executables
from tests.slurm_cluster import Cluster

LOOPBACK = "127.0.0.1"


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server((LOOPBACK, 0)) as server:
        server.settimeout(5)
        yield server


def port(server: socket.socket) -> int:
    number: int = server.getsockname()[1]
    return number


def on(**nodes: tuple[str, int]) -> Daemons:
    return Daemons("n[1-2]", lambda names: nodes)


def looks(slurmds: Daemons, until: float, interval: float = 0.1) -> list[str]:
    """What is found by a launch that does not get on, asked every `interval` seconds."""
    return [slurmds.gone(interval * number) for number in range(round(until / interval) + 1)]


def test_daemons_that_answer_are_seldom_looked_at(listening: socket.socket) -> None:
    assert set(looks(on(n1=(LOOPBACK, port(listening))), 20.0)) == {""}
    listening.settimeout(0.2)
    connections = 0
    with pytest.raises(TimeoutError):
        while True:
            listening.accept()[0].close()
            connections += 1
    assert connections == 3 + (20.0 - 2 * IDLE) // LATER, "after 0, 1, 2, 4, 6 to 20 s"


def test_a_launch_that_gets_on_is_a_reason_for_the_first_look_alone(
    listening: socket.socket,
) -> None:
    assert set(looks(on(n1=(LOOPBACK, port(listening))), IDLE / 2)) == {""}
    listening.accept()[0].close()
    listening.settimeout(0.2)
    with pytest.raises(TimeoutError):
        listening.accept()


def test_a_daemon_that_refuses_connections_for_long_is_gone(listening: socket.socket) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        closed = port(server)
    slurmds, began = on(n1=(LOOPBACK, port(listening)), n2=(LOOPBACK, closed)), time.monotonic()
    while not (why := slurmds.gone(IDLE + time.monotonic() - began)):
        time.sleep(0.02)
    assert why == "no slurmd answers on n2"
    assert REFUSING <= time.monotonic() - began < REFUSING + 2 * AGAIN + 1


def test_a_daemon_that_restarts_is_not_gone(listening: socket.socket) -> None:
    number = port(listening)
    listening.close()
    slurmds = on(n1=(LOOPBACK, number))
    assert slurmds.gone(IDLE) == ""
    with socket.create_server((LOOPBACK, number)):
        time.sleep(REFUSING)
        assert slurmds.gone(IDLE + REFUSING) == ""
    assert slurmds.gone(IDLE + REFUSING + LATER) == "", "it has refused since a moment ago"


def test_a_refusal_of_an_earlier_launch_does_not_count(listening: socket.socket) -> None:
    number = port(listening)
    listening.close()
    slurmds = on(n1=(LOOPBACK, number))
    assert slurmds.gone(IDLE) == ""
    time.sleep(REFUSING)
    assert slurmds.gone(0.0) == "" and slurmds.gone(IDLE) == "", "the next launch waits"


@pytest.mark.parametrize("answered", [True, False], ids=["node", "firewall"])
def test_a_node_falls_silent_only_once_it_has_answered(
    answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "CONNECT", 0.1)
    monkeypatch.setattr(daemons, "SILENT", 0.5)
    with contextlib.ExitStack() as ends:
        server = ends.enter_context(socket.socket())
        server.bind((LOOPBACK, 0))
        server.listen(0)
        address = (LOOPBACK, port(server))
        slurmds = on(n1=address)
        if answered:
            assert slurmds.gone(0.0) == ""
        with pytest.raises(TimeoutError):
            for _ in range(4):  # once the queue is full, the kernel answers no more
                ends.enter_context(socket.create_connection(address, daemons.CONNECT))
        assert slurmds.gone(IDLE) == ""
        time.sleep(0.5)
        assert slurmds.gone(IDLE + AGAIN) == ("no slurmd answers on n1" if answered else "")


def test_without_slurm_nothing_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executables, "find", lambda name: None)
    assert set(looks(Daemons("n[1-2]"), 5.0)) == {""}


@pytest.mark.ranks
@pytest.mark.alone
def test_slurm_says_where_they_listen(slurm: Cluster) -> None:
    ask = "from experiments.cluster.daemons import addresses; print(addresses('n[1-2]'))"
    done = slurm.run(".venv/bin/python", "-c", ask)
    assert done.stdout.strip() == "{'n1': ('n1', 6818), 'n2': ('n2', 6818)}", done
