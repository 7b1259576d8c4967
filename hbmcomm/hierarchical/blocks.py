"""Gather, Scatter, Allgather and Alltoall over several hosts, with and without v.

The blocks of a host go between hosts as one message, to and from its first leader; each byte goes
over a link once. Where they are not consecutive in memory, the leader packs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from hbmcomm.hierarchical import between
from hbmcomm.hierarchical.between import without_empty
from hbmcomm.hierarchical.grouping import Ranks
from hbmcomm.hierarchical.task import Task, move
from hbmcomm.hierarchical.ways import Ways, distances, scratch
from hbmcomm.hierarchical.wire import Packet, Place
from hbmcomm.transports.message import Bytes
from hbmcomm.transports.operand import Part


class Pack:
    """The blocks of some ranks: where they are in memory, and packed where they have gaps."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.nbytes = sum(nbytes for _, nbytes in self._parts)
        self.begin = next((offset for offset, nbytes in self._parts if nbytes), 0)
        end = self.begin
        self.packed: Bytes | None = None
        for offset, nbytes in self._parts:
            if nbytes and offset != end:
                self.packed = scratch(self.nbytes)
            end += nbytes

    def address_in(self, memory: int) -> int:
        """Where the message is."""
        return memory + self.begin if self.packed is None else self.packed.ctypes.data

    def pack(self, memory: int) -> None:
        """Copy the blocks from memory into the message."""
        for at, address, nbytes in self._copies(memory):
            move(at, address, nbytes)

    def unpack(self, memory: int) -> None:
        """Copy the blocks from the message to memory."""
        for at, address, nbytes in self._copies(memory):
            move(address, at, nbytes)

    def _copies(self, memory: int) -> Iterable[tuple[int, int, int]]:
        if self.packed is None:
            return
        at = self.packed.ctypes.data
        for offset, nbytes in self._parts:
            yield at, memory + offset, nbytes
            at += nbytes


def gather(ways: Ways, task: Task) -> None:
    layout, root, wire = ways.layout, task.root, ways.wire
    if layout.is_here(root):
        here, packs, comes = _at_root(ways, root, task.received_parts, task.recv)
        flight = wire.fly(wire.packets([], comes))
        own = layout.inside.index(root)
        ways.inside.move("Gatherv", task.nbytes, task.send, task.recv, own, None, here)
        wire.finish(flight)
        for pack in packs:
            pack.unpack(task.recv)
        return
    leader, parts, staged = _staged(ways, task.nbytes)
    ways.inside.move("Gatherv", task.nbytes, task.send, staged.ctypes.data, leader, None, parts)
    if parts is not None:
        wire.run(wire.packets([Packet(root, staged.ctypes.data, staged.nbytes)], []))


def scatter(ways: Ways, task: Task) -> None:
    layout, root, wire = ways.layout, task.root, ways.wire
    if layout.is_here(root):
        here, packs, goes = _at_root(ways, root, task.sent_parts, task.send)
        for pack in packs:
            pack.pack(task.send)
        flight = wire.fly(wire.packets(goes, []))
        own = layout.inside.index(root)
        ways.inside.move("Scatterv", task.nbytes, task.send, task.recv, own, here)
        wire.finish(flight)
        return
    leader, parts, staged = _staged(ways, task.nbytes)
    if parts is not None:
        wire.run(wire.packets([], [Packet(root, staged.ctypes.data, staged.nbytes)]))
    ways.inside.move("Scatterv", task.nbytes, staged.ctypes.data, task.recv, leader, parts)


def allgather(ways: Ways, task: Task) -> None:
    """Each rank chooses where it receives a block, so that what has gaps is packed on each."""
    layout = ways.layout
    parts = task.received_parts(len(layout.host_of))
    here = [parts[rank] for rank in layout.inside]
    ways.inside.move("Allgatherv", task.nbytes, task.send, task.recv, recv_parts=here)
    packs = [_pack(ranks, parts) for ranks in layout.hosts]
    places = [pack.address_in(task.recv) for pack in packs]
    lane = layout.lane()
    if lane.number == 0:
        packs[layout.host].pack(task.recv)
        pieces = [
            (place - task.recv, place - task.recv + pack.nbytes)
            for place, pack in zip(places, packs, strict=True)
        ]
        steps = without_empty(between.allgather(layout.host, pieces))
        ways.wire.run(ways.wire.steps(steps, Place(lane.peers, layout.host, task.recv, 1)))
    for host in _others(ways):
        ways.inside.bcast(places[host], packs[host].nbytes, lane.inside[0])
        packs[host].unpack(task.recv)


def alltoall(ways: Ways, task: Task) -> None:
    """Blocks for other hosts go from their sender to their receiver."""
    layout = ways.layout
    ranks = len(layout.host_of)
    sent, received = task.sent_parts(ranks), task.received_parts(ranks)
    elsewhere = [rank for host in _others(ways) for rank in layout.hosts[host]]
    flight = ways.wire.fly(
        ways.wire.packets(
            [Packet(rank, task.send + sent[rank][0], sent[rank][1]) for rank in elsewhere],
            [Packet(rank, task.recv + received[rank][0], received[rank][1]) for rank in elsewhere],
        )
    )
    here = [[parts[rank] for rank in layout.inside] for parts in (sent, received)]
    ways.inside.move("Alltoallv", sent[layout.rank][1], task.send, task.recv, 0, *here)
    ways.wire.finish(flight)


def _pack(ranks: Ranks, parts: Sequence[Part]) -> Pack:
    """The blocks of the ranks of one host."""
    return Pack([parts[rank] for rank in ranks])


def _others(ways: Ways) -> list[int]:
    return list(distances(ways.layout.host, len(ways.layout.hosts)))


def _at_root(
    ways: Ways, root: int, parts_of: Callable[[int], Sequence[Part]], memory: int
) -> tuple[list[Part] | None, list[Pack], list[Packet]]:
    """On the root: the parts of this host's ranks, and each other host's as a message."""
    layout = ways.layout
    if layout.rank != root:
        return None, [], []
    parts = parts_of(len(layout.host_of))
    packs, messages = list[Pack](), list[Packet]()
    for host in _others(ways):
        pack = _pack(layout.hosts[host], parts)
        packs.append(pack)
        leader = layout.leaders_of(host)[0]
        messages.append(Packet(leader, pack.address_in(memory), pack.nbytes))
    return [parts[rank] for rank in layout.inside], packs, messages


def _staged(ways: Ways, nbytes: int) -> tuple[int, list[Part] | None, Bytes]:
    """The leader of this host; on it, memory for the blocks of its ranks, and their parts of it."""
    layout = ways.layout
    leader = layout.lane().inside[0]
    leads = layout.index == leader
    own, every = np.array([nbytes], np.int64), np.zeros(len(layout.inside), np.int64)
    numbers = [(8 * index, 8) for index in range(every.size)] if leads else None
    ways.inside.move("Gatherv", 8, own.ctypes.data, every.ctypes.data, leader, None, numbers)
    if not leads:
        return leader, None, scratch(0)
    ends = np.cumsum(every)
    parts = list(zip((ends - every).tolist(), every.tolist(), strict=True))
    return leader, parts, scratch(ends[-1])[: ends[-1]]
