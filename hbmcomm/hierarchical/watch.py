"""Notices which ranks die, leave or make other calls, on whatever host, and tells ranks that wait.

The first rank of each host is its *sentinel*. Sentinels are connected with each other, and all
ranks of a host with theirs. The kernel closes the connection of a process that dies; keepalive ends
that to a host that vanishes. A sentinel passes on what it learns. All ranks listen on a thread that
otherwise sleeps, so that they learn of a death even while their sentinel makes no call.
"""

from __future__ import annotations

import select
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from hbmcomm.errors import CallMismatch, PeerError
from hbmcomm.hierarchical.grouping import Layout
from hbmcomm.hierarchical.links import (
    Calls,
    Link,
    Listener,
    Notice,
    connect,
    network,
    reached_at,
)
from hbmcomm.memory.consensus import Allgather

GRACE = 5.0  # seconds in which what a rank sent before it left must come
_PATIENCE = 1.0  # seconds of waiting after which a rank reports its call to the others
_DIED, _SILENT, _LEFT = "died", "does not answer", "left"
_GARBLED = "sends something other than a notice"
_WAITS, _DIFFERS = "waits", "differs"
_UNUSABLE = "; the communicator is unusable now"


class _Leave(NamedTuple):
    """When a rank left, and how many calls it had finished."""

    moment: float
    finished: int


class Watch:
    """One rank's view of all ranks of a communicator.

    Args:
        links: The rank at the other end of each connection.
    """

    def __init__(self, layout: Layout, links: dict[int, Link]) -> None:
        self._layout, self._links = layout, dict(links)
        self._ranks = {link.fileno(): rank for rank, link in links.items()}
        self._news = select.epoll()
        for end in self._ranks:
            self._news.register(end, select.EPOLLIN)
        self._is_sentinel = layout.index == 0
        self._lock = threading.RLock()
        self._lost = self._differs = ""
        self._is_closed = False
        self._calls, self._told = Calls(), 0
        self._left: dict[int, _Leave] = {}
        self._announce = self._at_leaving()
        view = weakref.ref(self)
        threading.Thread(target=listen, args=(view,), daemon=True).start()

    @property
    def news(self) -> int:
        """A descriptor that is readable when notices have come that were not read yet."""
        return self._news.fileno()

    def watch_calls(self, calls: Calls) -> None:
        """End these when a rank is lost, or makes other ones."""
        self._announce.detach()
        self._calls = calls
        self._announce = self._at_leaving()
        self._end_calls()

    def _at_leaving(self) -> Any:
        ends = list(self._links.values())
        return weakref.finalize(self, _announce_leave, self._layout.rank, ends, self._calls)

    def refuse_lost(self) -> None:
        """Raise an error where news of a loss has come; waits for none.

        Raises:
            PeerError: A rank died, left, or gave up.
            CallMismatch: Ranks called different collectives.
        """
        if not (self._lost or self._differs):
            self.read(0.0)
        if self._differs:
            raise CallMismatch(f"{self._differs}{_UNUSABLE}")
        if self._lost:
            raise PeerError(f"{self._lost}{_UNUSABLE}")

    def refuse_gone(self, rank: int) -> None:
        """Raise PeerError where nothing can be sent to a rank any more; other errors as above."""
        self.refuse_lost()
        if rank in self._left:
            raise PeerError(f"rank {rank} has left{_UNUSABLE}")

    def look(self, waited: float) -> None:
        """Raise an error where this rank waits for one that is gone, or is in another call.

        Args:
            waited: Seconds since the last message.
        """
        self.refuse_lost()
        begun, _, _ = self._calls.numbers()
        if waited > _PATIENCE and begun:
            self._tell_calls(begun)
        now = time.monotonic()
        needed = max(begun, 1)  # where calls are not counted, any rank may be needed
        for rank, leave in list(self._left.items()):
            if leave.finished < needed and min(waited, now - leave.moment) > GRACE:
                raise PeerError(f"rank {rank} has left{_UNUSABLE}")

    def fail(self, why: str) -> None:
        """Report to all ranks that this one cannot continue."""
        if not (self._lost or self._differs):
            self._tell(f"gave up: {why.removesuffix(_UNUSABLE)}")
        self.close()

    def close(self) -> None:
        """Leave."""
        self._is_closed = True
        with self._lock:
            self._links.clear()
        self._announce()

    def read(self, seconds: float) -> bool:
        """Read the notices that have come, or come in this time; whether calls need watching.

        They do where all others have left too: a call that needs one of them must end.
        """
        if self._news.poll(seconds):
            with self._lock:  # another thread may have read meanwhile what was seen without it
                for end, _ in self._news.poll(0):
                    self._read_from(self._ranks[end])
        return not (self._is_closed or self._lost or self._differs)

    def _tell(self, what: str, **more: Any) -> None:
        notice = Notice(self._layout.rank, what, **more)
        for link in list(self._links.values()):
            link.send(notice)

    def _tell_calls(self, begun: int) -> None:
        """Say once for each call that this rank waits in it."""
        if begun != self._told:
            self._told = begun
            self._tell(_WAITS, calls=tuple(self._calls.recent()))

    def tend_calls(self) -> None:
        """End a call that waits for a rank that is gone, or that other ranks do not make."""
        begun, finished, waited = self._calls.numbers()
        if begun == finished:
            return
        try:
            self.look(waited)
        except PeerError as error:
            self._lost = self._lost or str(error).partition(";")[0]
        except CallMismatch:
            pass
        self._end_calls()

    def _end_calls(self) -> None:
        if self._lost or self._differs:
            self._calls.lose()

    def _read_from(self, rank: int) -> None:
        link = self._links.get(rank)
        if link is None:
            return
        try:
            for notice in link.receive():
                self._heard(notice, rank)
        except (OSError, ValueError) as error:
            if link.fileno() < 0:  # this rank closed it
                return
            self._links.pop(rank).close()
            if rank not in self._left:
                silent = _SILENT if isinstance(error, OSError) else _GARBLED
                what = _DIED if isinstance(error, ConnectionError) else silent
                self._heard(Notice(rank, what), rank)

    def _heard(self, notice: Notice, source: int) -> None:
        """Pass it on to ranks that nobody else informs, then record it.

        In this order: once it is recorded, another thread may raise an error and end this process,
        and to ranks that were not told why it would be this rank that died.
        """
        if self._is_sentinel:
            for other, link in list(self._links.items()):
                if other != source and any(map(self._layout.is_here, (source, other))):
                    link.send(notice)
        rank, what = notice.rank, notice.what
        if what == _LEFT:
            self._left[rank] = _Leave(time.monotonic(), notice.finished)
        elif what == _DIFFERS:
            self._differs = notice.text
        elif what == _WAITS:
            self._compare(rank, notice.calls)
        elif not self._lost:
            self._lost = f"rank {rank} {what}"
        self._end_calls()

    def _compare(self, rank: int, calls: tuple[tuple[int, str], ...]) -> None:
        """Report where another rank waits in another call than this one."""
        differs = self._calls.difference(calls)
        if differs is None:
            return
        own, theirs = differs
        name = own.partition("(")[0]
        is_same = name == theirs.partition("(")[0]
        what = f"{name} with different arguments" if is_same else "different collectives"
        text = f"ranks called {what}: rank {self._layout.rank} {own}, rank {rank} {theirs}"
        self._tell(_DIFFERS, text=text)
        self._differs = text


def create(allgather: Allgather, layout: Layout) -> Watch | None:
    """The watch of all ranks; collective. None, and a warning, where TCP does not connect them."""
    sentinels = [ranks[0] for ranks in layout.hosts]
    links: dict[int, Link] = {}
    accepted: list[int] = []
    if layout.index == 0:
        own = sentinels.index(layout.rank)
        accepted = [*sentinels[own + 1 :], *layout.inside[1:]]
        wanted = sentinels[:own]
    else:
        wanted = [layout.inside[0]]
    networks = allgather(network())
    addresses = reached_at(networks[layout.rank], [networks[rank] for rank in accepted])
    listener = _attempt(Listener, addresses, len(accepted)) if accepted else None
    offers = allgather(listener.offer if listener is not None else None)
    is_over = threading.Event()

    def answer() -> None:
        while listener is not None and set(accepted) - links.keys() and not is_over.is_set():
            with suppress(OSError):  # others may still try the addresses before one that works
                caller = listener.accept()
                if caller is not None:
                    links.setdefault(*caller)

    answering = threading.Thread(target=answer, daemon=True)
    answering.start()
    for other in wanted:
        offer = offers[other]
        link = _attempt(connect, offer, layout.rank) if offer is not None else None
        if link is not None:
            links[other] = link
    allgather(None)  # all have tried all addresses, and those that are connected were answered
    is_over.set()
    answering.join()
    if listener is not None:
        listener.close()
    unreached = allgather(sorted({*wanted, *accepted} - links.keys()))
    if not any(unreached):
        return Watch(layout, links)
    for link in links.values():
        link.close()
    if layout.rank == 0:
        one, other = next((rank, peers[0]) for rank, peers in enumerate(unreached) if peers)
        warnings.warn(
            f"ranks {one} and {other} cannot be connected by TCP: only MPI can report ranks of "
            "other hosts that die; let ranks connect to each other",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def _attempt(act: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return act(*arguments)
    except OSError:
        return None


def listen(view: weakref.ref[Watch]) -> None:
    """On a thread, until the watch is gone: every second it looks whether it is."""
    going_on = True
    while going_on:
        watch = view()
        if watch is None:
            return
        try:
            going_on = watch.read(1.0)
            watch.tend_calls()
        except OSError:  # closed meanwhile
            return
        del watch


def _announce_leave(rank: int, links: list[Link], calls: Calls) -> None:
    _, finished, _ = calls.numbers()
    for link in links:
        link.send(Notice(rank, _LEFT, finished))
        link.close()
