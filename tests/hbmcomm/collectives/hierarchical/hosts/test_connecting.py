"""Which ranks get a watch, where some addresses of a host answer nobody. Ranks are threads here."""

import socket
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hbmcomm.collectives.hierarchical.hosts import links, watch
from hbmcomm.collectives.hierarchical.hosts.layout import Layout

PATIENCE = 0.2  # seconds
SILENT = ("192.0.2.1", "192.0.2.2")  # reserved for documentation: packets to them get no reply
NODES = {0: 0, 1: 0}


def created() -> list[watch.Watch | None]:
    """What each of two ranks on two hosts gets."""
    told: list[Any] = [None, None]
    meeting = threading.Barrier(2)

    def rank(number: int) -> watch.Watch | None:
        def allgather(value: Any) -> list[Any]:
            told[number] = value
            meeting.wait()
            found = list(told)
            meeting.wait()
            return found

        return watch.create(allgather, Layout([(0,), (1,)], number, 1, NODES))

    with ThreadPoolExecutor(2) as ranks:
        return list(ranks.map(rank, range(2)))


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall that swallows packets to some addresses."""
    connect = socket.create_connection

    def connect_or_not(address: tuple[str, int], timeout: float) -> socket.socket:
        if address[0] in SILENT:
            threading.Event().wait(timeout)
            raise TimeoutError("timed out")
        return connect(address, timeout)

    monkeypatch.setattr(socket, "create_connection", connect_or_not)
    monkeypatch.setattr(links, "_PATIENCE", PATIENCE)


@pytest.mark.usefixtures("silent")
def test_ranks_are_connected_by_an_address_after_silent_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "_addresses", lambda: (*SILENT, "127.0.0.1"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watches = created()
    for each in watches:
        assert each is not None
        each.close()


@pytest.mark.usefixtures("silent")
def test_rank_0_warns_where_ranks_cannot_be_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_addresses", lambda: SILENT)
    words = r"ranks 0 and 1 cannot be connected by TCP: only MPI can report .* let ranks connect"
    with pytest.warns(RuntimeWarning, match=words) as warned:
        assert created() == [None, None]
    assert len(warned) == 1
