"""Which ranks get a watch, where some addresses of a host answer nobody. Ranks are threads here."""

import contextlib
import socket
import threading
import warnings
from collections.abc import Iterator
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
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A firewall that swallows packets to some addresses."""
    begin, others = links._begin, list[socket.socket]()

    def begin_or_not(address: str, port: int) -> socket.socket:
        if address not in SILENT:
            return begin(address, port)
        full, other = socket.socketpair()  # never writable
        others.append(other)
        full.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while full.send(bytes(65536)):
                pass
        return full

    monkeypatch.setattr(links, "_begin", begin_or_not)
    yield
    for each in others:
        each.close()


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("silent")
def test_ranks_are_connected_by_an_address_beside_silent_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "_PATIENCE", 300.0)
    monkeypatch.setattr(links, "_addresses", lambda: (*SILENT, "127.0.0.1"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watches = created()
    for each in watches:
        assert each is not None
        each.close()


@pytest.mark.usefixtures("silent")
def test_rank_0_warns_where_ranks_cannot_be_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_PATIENCE", PATIENCE)
    monkeypatch.setattr(links, "_addresses", lambda: SILENT)
    words = r"ranks 0 and 1 cannot be connected by TCP: only MPI can report .* let ranks connect"
    with pytest.warns(RuntimeWarning, match=words) as warned:
        assert created() == [None, None]
    assert len(warned) == 1
