"""What a rank knows of others that go, from the connections with them alone."""

import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hbmcomm import CallMismatch, PeerError
from hbmcomm.hierarchical import links
from hbmcomm.hierarchical import watch as watch_module
from hbmcomm.hierarchical.grouping import Layout
from hbmcomm.hierarchical.links import Calls, Link, Notice
from hbmcomm.hierarchical.watch import Watch

TWO_HOSTS = Layout([(0,), (1,)], 0, 1, {0: 0, 1: 0})


class End(Link):
    """An end of a connection: what it sent has come when it goes on, on a busy machine too."""

    def __init__(self, connected: socket.socket, other: Link) -> None:
        super().__init__(connected)
        self.connected, self.other = connected, other

    def send(self, notice: Notice) -> None:
        super().send(notice)
        self.wait()

    def close(self) -> None:
        super().close()
        self.wait()

    def wait(self) -> None:
        if self.other.fileno() >= 0:
            select.select([self.other], [], [], 5.0)


class Asking(Link):
    """A connection that asks on another thread, before it sends, whether anything is lost."""

    watch: Watch | None = None

    def send(self, notice: Notice) -> None:
        if self.watch is not None:
            with ThreadPoolExecutor() as pool:
                pool.submit(self.watch.refuse_lost).result()
        super().send(notice)


def connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return socket.create_connection(server.getsockname()), server.accept()[0]


Connected = tuple[Watch, End]


@pytest.fixture
def other_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connected]:
    """Rank 0's watch, and rank 1's end of their connection. No other thread reads."""
    monkeypatch.setattr(watch_module, "listen", lambda view: None)
    own_socket, other_socket = connected()
    own = Link(own_socket)
    end = End(other_socket, own)
    watch = Watch(TWO_HOSTS, {1: own})
    yield watch, end
    watch.close()
    end.close()


def one_call(text: str, lost: list[str]) -> Calls:
    """A call that has begun; `lost` gets its text when it must end."""
    return Calls(
        lambda: (1, 0, 0.0), lambda number: {1: text}.get(number, ""), lambda: lost.append(text)
    )


def test_a_rank_that_died_is_refused_before_another_thread_says_so(other_end: Connected) -> None:
    watch, end = other_end
    watch.refuse_lost()
    end.close()
    with pytest.raises(PeerError, match="rank 1 died"):
        watch.refuse_lost()


def test_a_rank_tells_others_of_a_death_before_it_may_end_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else they would take its own end for the cause."""
    monkeypatch.setattr(watch_module, "listen", lambda view: None)
    (own_inside, inside), (own_outside, outside) = connected(), connected()
    asking = Asking(own_outside)
    watch = Watch(
        Layout([(0, 2), (1,)], 0, 2, {0: 0, 1: 1, 2: 0}), {2: Link(own_inside), 1: asking}
    )
    asking.watch = watch
    inside.close()
    with pytest.raises(PeerError, match="rank 2 died"):
        watch.refuse_lost()
    assert next(iter(Link(outside).receive())) == Notice(2, "died")
    asking.watch = None
    watch.close()
    outside.close()


def test_a_rank_that_left_is_no_error_while_its_messages_may_come(other_end: Connected) -> None:
    watch, end = other_end
    end.send(Notice(1, "left", 0))
    for _ in range(100):
        watch.look(0.0)
    end.close()
    watch.refuse_lost()


def test_nothing_can_be_sent_to_a_rank_that_left(other_end: Connected) -> None:
    watch, end = other_end
    watch.refuse_gone(1)
    end.send(Notice(1, "left", 0))
    with pytest.raises(PeerError, match="rank 1 has left"):
        watch.refuse_gone(1)
    watch.refuse_gone(2)


@pytest.mark.parametrize(("finished", "needed"), [(1, 1), (2, 1), (1, 2), (0, 1), (0, 0)])
def test_only_a_rank_that_left_before_its_part_in_a_call_is_an_error(
    other_end: Connected, monkeypatch: pytest.MonkeyPatch, finished: int, needed: int
) -> None:
    """Without calls, as of regions, any rank that left may be the one that is needed."""
    monkeypatch.setattr(watch_module, "GRACE", 0.0)
    watch, end = other_end
    watch.watch_calls(Calls(lambda: (needed, 0, 0.0)))
    end.send(Notice(1, "left", finished))
    watch.refuse_lost()
    if 0 < needed <= finished:
        watch.look(99.0)
    else:
        with pytest.raises(PeerError, match="rank 1 has left"):
            watch.look(99.0)


def test_a_call_that_needs_the_only_other_rank_ends_after_that_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_module, "GRACE", 1.5)
    own, other = connected()
    lost: list[str] = []
    watch = Watch(TWO_HOSTS, {1: Link(own)})
    began = time.monotonic()
    calls = Calls(
        lambda: (1, 0, time.monotonic() - began), lambda number: "Barrier", lambda: lost.append("")
    )
    watch.watch_calls(calls)
    end = Link(other)
    end.send(Notice(1, "left", 0))
    end.close()
    while not lost and time.monotonic() < began + 20:
        time.sleep(0.01)
    assert lost and time.monotonic() > began + 1.5
    watch.close()


def test_a_rank_that_gives_up_says_once_that_the_communicator_is_unusable(
    other_end: Connected,
) -> None:
    watch, end = other_end
    watch.fail("rank 5 died; the communicator is unusable now")
    assert next(iter(end.receive())) == Notice(0, "gave up: rank 5 died")


def test_a_rank_leaves_with_the_number_of_calls_that_it_finished(other_end: Connected) -> None:
    watch, end = other_end
    watch.watch_calls(Calls(lambda: (2, 1, 0.0)))
    watch.close()
    assert list(end.receive()) == [Notice(0, "left", 1)]


def test_a_rank_that_waits_in_another_call_is_an_error_on_both(other_end: Connected) -> None:
    watch, end = other_end
    lost: list[str] = []
    watch.watch_calls(one_call("Barrier(0 bytes, root=0)", lost))
    watch.look(0.0)
    end.send(Notice(1, "waits", calls=((1, "Bcast(8 bytes, root=0)"),)))
    words = r"rank 0 Barrier\(0 bytes, root=0\), rank 1 Bcast\(8 bytes, root=0\)"
    with pytest.raises(CallMismatch, match=words):
        watch.refuse_lost()
    (notice,) = end.receive()
    assert notice.what == "differs" and lost


def test_a_rank_says_once_in_which_call_it_waits(other_end: Connected) -> None:
    watch, end = other_end
    watch.watch_calls(one_call("Bcast(8 bytes, root=1)", []))
    for _ in range(3):
        watch.look(2.0)
    (notice,) = end.receive()
    assert notice.calls == ((1, "Bcast(8 bytes, root=1)"),)


@pytest.mark.parametrize(
    "line",
    [
        *(b"{}", b"[]", b"\xff", b"[" * 5000, b"1" * 5000, b'[1, "left", "x", [], ""]'),
        *(b'[1, "waits", 0, [["x", 1]], ""]', b'{"rank": null, "what": "left"}'),
    ],
)
def test_what_is_no_notice_is_a_loss_of_its_rank_and_no_other_error(
    other_end: Connected, line: bytes
) -> None:
    watch, end = other_end
    end.connected.sendall(line + b"\n")
    end.wait()
    with pytest.raises(PeerError, match="rank 1 sends something other than a notice"):
        for _ in range(100):
            watch.refuse_lost()


def test_a_notice_without_an_end_is_given_up(
    other_end: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "NOTICE", 10_000)
    watch, end = other_end
    with pytest.raises(PeerError, match="rank 1 sends something other than a notice"):
        for _ in range(100):
            end.connected.sendall(b"x" * 1000)
            watch.refuse_lost()
