"""Gather, Scatter, Allgather and Alltoall over several hosts, with and without v.

The blocks of a host go between hosts as one message, to and from its first leader; each byte goes
over a link once. Where they are not consecutive in memory, the leader packs them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hbmcomm.collectives.buffers.operand import Part
from hbmcomm.collectives.hierarchical.between import ring
from hbmcomm.collectives.hierarchical.between.steps import without_empty
from hbmcomm.collectives.hierarchical.hosts.layout import Ranks
from hbmcomm.collectives.hierarchical.packs import Pack
from hbmcomm.collectives.hierarchical.task import Task
from hbmcomm.collectives.hierarchical.ways import Ways, distances, scratch
from hbmcomm.collectives.hierarchical.wire import Packet, Place


def gather(ways: Ways, task: Task) -> None:
    layout, root = ways.layout, task.root
    if layout.is_here(root):
        at_root = layout.rank == root
        parts = task.received_parts(len(layout.host_of)) if at_root else []
        packs = [_pack(layout.hosts[host], parts) for host in _others(ways) if at_root]
        leaders = [layout.leaders_of(host)[0] for host in _others(ways)]
        comes = [
            Packet(leader, pack.address_in(task.recv), pack.nbytes)
            for leader, pack in zip(leaders, packs, strict=False)
        ]
        flight = ways.wire.fly(ways.wire.packets([], comes))
        here = [parts[rank] for rank in layout.inside] if at_root else None
        ways.inside.gatherv(task.nbytes, task.send, task.recv, here, layout.inside.index(root))
        ways.wire.finish(flight)
        for pack in packs:
            pack.unpack(task.recv)
        return
    leader = layout.lane().inside[0]
    parts = _lengths(ways, task.nbytes, leader)
    leads = layout.index == leader
    staged = scratch(sum(nbytes for _, nbytes in parts) if leads else 0)
    ways.inside.gatherv(
        task.nbytes, task.send, staged.ctypes.data, parts if leads else None, leader
    )
    if leads:
        total = sum(nbytes for _, nbytes in parts)
        ways.wire.run(ways.wire.packets([Packet(root, staged.ctypes.data, total)], []))


def scatter(ways: Ways, task: Task) -> None:
    layout, root = ways.layout, task.root
    if layout.is_here(root):
        at_root = layout.rank == root
        parts = task.sent_parts(len(layout.host_of)) if at_root else []
        packs = [_pack(layout.hosts[host], parts) for host in _others(ways) if at_root]
        leaders = [layout.leaders_of(host)[0] for host in _others(ways)]
        for pack in packs:
            pack.pack(task.send)
        goes = [
            Packet(leader, pack.address_in(task.send), pack.nbytes)
            for leader, pack in zip(leaders, packs, strict=False)
        ]
        flight = ways.wire.fly(ways.wire.packets(goes, []))
        here = [parts[rank] for rank in layout.inside] if at_root else None
        ways.inside.scatterv(task.nbytes, task.send, task.recv, here, layout.inside.index(root))
        ways.wire.finish(flight)
        return
    leader = layout.lane().inside[0]
    parts = _lengths(ways, task.nbytes, leader)
    leads = layout.index == leader
    total = sum(nbytes for _, nbytes in parts)
    staged = scratch(total if leads else 0)
    if leads:
        ways.wire.run(ways.wire.packets([], [Packet(root, staged.ctypes.data, total)]))
    ways.inside.scatterv(
        task.nbytes, staged.ctypes.data, task.recv, parts if leads else None, leader
    )


def allgather(ways: Ways, task: Task) -> None:
    """Each rank chooses where it receives a block, so that what has gaps is packed on each."""
    layout = ways.layout
    parts = task.received_parts(len(layout.host_of))
    here = [parts[rank] for rank in layout.inside]
    ways.inside.allgatherv(task.nbytes, task.send, task.recv, here)
    packs = [_pack(ranks, parts) for ranks in layout.hosts]
    places = [pack.address_in(task.recv) for pack in packs]
    lane = layout.lane()
    if lane.number == 0:
        packs[layout.host].pack(task.recv)
        pieces = [
            (place - task.recv, place - task.recv + pack.nbytes)
            for place, pack in zip(places, packs, strict=True)
        ]
        steps = without_empty(ring.allgather(layout.host, pieces))
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
    ways.inside.alltoallv(
        sent[layout.rank][1],
        task.send,
        task.recv,
        [sent[rank] for rank in layout.inside],
        [received[rank] for rank in layout.inside],
    )
    ways.wire.finish(flight)


def _pack(ranks: Ranks, parts: Sequence[Part]) -> Pack:
    """The blocks of the ranks of one host."""
    return Pack([parts[rank] for rank in ranks])


def _others(ways: Ways) -> list[int]:
    return list(distances(ways.layout.host, len(ways.layout.hosts)))


def _lengths(ways: Ways, nbytes: int, leader: int) -> list[Part]:
    """On the leader: the block of each rank of this host, one after the other; else nothing."""
    layout = ways.layout
    own, every = np.array([nbytes], np.int64), np.zeros(len(layout.inside), np.int64)
    leads = layout.index == leader
    parts = [(8 * index, 8) for index in range(every.size)] if leads else None
    ways.inside.gatherv(8, own.ctypes.data, every.ctypes.data, parts, leader)
    ends = np.cumsum(every)
    return list(zip((ends - every).tolist(), every.tolist(), strict=True)) if leads else []
