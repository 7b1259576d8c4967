"""How ranks of several hosts connect, and which of their calls differ. Ranks are threads here."""

import contextlib
import socket
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hbmcomm.hierarchical import links, watch
from hbmcomm.hierarchical.grouping import Layout
from tests.hbmcomm.memory.cast import Cast

PATIENCE = 0.2  # seconds
LATE = 30.0  # seconds: far more than a busy machine needs, far less than a stranger may take
SILENT = (("192.0.2.1", 9), ("192.0.2.2", 9))
"""Of addresses reserved for documentation: packets to them get no reply."""
LOOPBACK = "127.0.0.1"


def created() -> list[watch.Watch | None]:
    """What each of two ranks on two hosts gets."""
    return Cast(2)(
        lambda rank: watch.create(
            rank.allgather, Layout([(0,), (1,)], rank.number, 1, {0: 0, 1: 0})
        )
    )


def announcing(monkeypatch: pytest.MonkeyPatch, others: Any, own: bool = True) -> list[list[str]]:
    """Have listeners announce other places before their own, or instead; where they listen."""
    listened: list[list[str]] = []

    class Announcing(links.Listener):
        def __init__(self, addresses: list[str], ranks: int) -> None:
            super().__init__(addresses, ranks)
            listened.append(addresses)
            places = (*others, *(self.offer.places if own else ()))
            self.offer = self.offer._replace(places=places)

    monkeypatch.setattr(watch, "Listener", Announcing)
    return listened


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A firewall that swallows packets to some addresses."""
    begin, others = links.begin, list[socket.socket]()

    def begin_or_not(place: tuple[str, int]) -> socket.socket:
        if place not in SILENT:
            return begin(place)
        silent, other = socket.socketpair()  # nothing comes
        others.append(other)
        silent.setblocking(False)
        return silent

    monkeypatch.setattr(links, "begin", begin_or_not)
    yield
    for peer in others:
        peer.close()


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("silent")
def test_ranks_are_connected_by_an_address_beside_silent_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "PATIENCE", 300.0)
    announcing(monkeypatch, SILENT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watches = created()
    for rank_watch in watches:
        assert rank_watch is not None
        rank_watch.close()


@pytest.mark.usefixtures("silent")
def test_rank_0_warns_where_ranks_cannot_be_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "PATIENCE", PATIENCE)
    announcing(monkeypatch, SILENT, own=False)
    words = r"ranks 0 and 1 cannot be connected by TCP: only MPI can report .* let ranks connect"
    with pytest.warns(RuntimeWarning, match=words) as warned:
        assert created() == [None, None]
    assert len(warned) == 1


def test_ranks_of_one_network_meet_on_its_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    listened = announcing(monkeypatch, ())
    for rank_watch in created():
        assert rank_watch is not None
        rank_watch.close()
    assert listened == [[LOOPBACK]]  # rank 0: no rank connects to the last one


def test_a_process_listens_where_its_routes_to_the_callers_begin() -> None:
    own = links.network()
    assert LOOPBACK in own.addresses and own == links.network()
    same, empty = [own, own], own._replace(namespace="net:[1]", addresses=())
    assert links.reached_at(own, same) == [LOOPBACK]
    assert links.reached_at(own, [empty]) == [LOOPBACK]  # there is no route to nowhere
    for address in ("127.0.0.9", SILENT[0][0]):
        addresses = links.reached_at(own, [empty._replace(addresses=(address,)), *same])
        assert len(addresses) == 1 and addresses[0] in own.addresses


@pytest.fixture
def listener() -> Iterator[links.Listener]:
    """A listener that accepts ranks in a thread until the test ends."""
    listening = links.Listener([LOOPBACK])
    yield listening
    listening.close()


def test_a_listener_is_at_the_addresses_that_it_announces_alone() -> None:
    """What listens everywhere is at every address of the loopback."""
    listener = links.Listener([LOOPBACK, "127.0.0.3"])
    try:
        assert [address for address, _ in listener.offer.places] == [LOOPBACK, "127.0.0.3"]
        for place in listener.offer.places:
            socket.create_connection(place, 5.0).close()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", place[1]), 5.0)
    finally:
        listener.close()


def test_no_listener_is_left_where_an_address_is_none_of_this_machine() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        links.Listener([LOOPBACK, SILENT[0][0]])


def dripping(connected: socket.socket, seconds: float) -> bool:
    """Send a byte now and then; whether the other side still takes it after this time."""
    end = time.monotonic() + seconds
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < end:
            connected.send(b"x")
            time.sleep(0.02)
        return True
    return False


def test_strangers_who_say_little_hold_up_no_rank(
    listener: links.Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "CALLERS", 8)
    monkeypatch.setattr(links, "PATIENCE", 2 * LATE)
    place = listener.offer.places[0]
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        silent = [stack.enter_context(socket.create_connection(place)) for _ in range(20)]
        drip = threads.submit(dripping, silent[-1], 0.5)
        accepted = threads.submit(listener.accept)
        began = time.monotonic()
        link = links.connect(listener.offer, 7)
        assert time.monotonic() - began < LATE
        ranked = accepted.result()
        assert ranked is not None and ranked[0] == 7
        ranked[1].send(links.Notice(7, "left", 3))
        assert link.receive() == [links.Notice(7, "left", 3)]
        for end in (link, ranked[1]):
            end.close()
        drip.result()


def test_a_stranger_has_one_deadline_for_all_that_it_says(
    listener: links.Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "PATIENCE", 0.2)
    with (
        socket.create_connection(listener.offer.places[0]) as stranger,
        ThreadPoolExecutor(1) as thread,
    ):
        drip = thread.submit(dripping, stranger, 3.0)
        while not drip.done():
            assert listener.accept() is None
        assert not drip.result()


@pytest.mark.parametrize("hello", [b"", b"x" * 200, "SECRET"])
def test_who_does_not_prove_to_know_the_secret_is_sent_away(
    listener: links.Listener, monkeypatch: pytest.MonkeyPatch, hello: bytes | str
) -> None:
    monkeypatch.setattr(links, "PATIENCE", 0.2)
    if isinstance(hello, str):
        hello = listener.offer.secret.encode() * 2
    with socket.create_connection(listener.offer.places[0]) as stranger:
        stranger.sendall(hello)
        stranger.shutdown(socket.SHUT_WR)
        assert listener.accept() is None
        with contextlib.suppress(ConnectionResetError):
            assert len(stranger.recv(100)) == 32 and stranger.recv(100) == b""


def test_a_stranger_at_an_address_of_a_listener_holds_up_nobody() -> None:
    """On another host the address may be that of a program that answers slowly, or wrongly."""
    listener = links.Listener([LOOPBACK])
    with (
        socket.create_server(("127.0.0.2", 0)) as slow,
        socket.create_server(("127.0.0.3", 0)) as wrong,
        ThreadPoolExecutor(3) as threads,
    ):
        places = tuple(server.getsockname() for server in (slow, wrong))
        offer = listener.offer._replace(places=(*places, *listener.offer.places))
        drip = threads.submit(lambda: dripping(slow.accept()[0], 2 * LATE))
        threads.submit(lambda: wrong.accept()[0].sendall(b"y" * 64))
        accepted = threads.submit(listener.accept)
        began = time.monotonic()
        links.connect(offer, 5).close()
        assert time.monotonic() - began < LATE
        ranked = accepted.result()
        assert ranked is not None and ranked[0] == 5
        ranked[1].close()
        assert not drip.result()
    listener.close()


def test_many_ranks_that_connect_at_once_are_all_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More than there may be strangers."""
    monkeypatch.setattr(links, "CALLERS", 1)
    listener = links.Listener([LOOPBACK], 16)
    with ThreadPoolExecutor(16) as threads:
        connected = [threads.submit(links.connect, listener.offer, rank) for rank in range(16)]
        accepted = [pair for _ in connected if (pair := listener.accept()) is not None]
        assert sorted(rank for rank, _ in accepted) == list(range(16))
        for link in (*(future.result() for future in connected), *(link for _, link in accepted)):
            link.close()
    listener.close()


# ---- where two ranks made different calls, from what each remembers ----


def after(*calls: str) -> links.Calls:
    texts = dict(enumerate(calls, 1))
    return links.Calls(lambda: (len(calls), len(calls), 0.0), lambda number: texts.get(number, ""))


SUM, GIVE, WAIT = "Allreduce(8 bytes, root=0)", "Bcast(8 bytes, root=1)", "Barrier()"


def test_the_first_different_call_is_found_from_either_side() -> None:
    here, there = after(SUM, GIVE, WAIT), after(SUM, SUM, WAIT)
    assert here.difference(there.recent()) == (GIVE, SUM)
    assert there.difference(here.recent()) == (SUM, GIVE)


def test_a_rank_that_is_behind_differs_in_nothing() -> None:
    here, there = after(SUM, GIVE, WAIT), after(SUM)
    assert here.difference(there.recent()) is None
    assert there.difference(here.recent()) is None
    assert there.difference(links.Calls().recent()) is None


def test_a_root_far_ahead_still_knows_the_call_in_which_others_wait() -> None:
    here, there = after(SUM, *[GIVE] * 1000), after(SUM, SUM)
    assert here.difference(there.recent()) == (GIVE, SUM)
