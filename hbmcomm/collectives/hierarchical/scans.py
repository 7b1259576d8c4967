"""Scan and Exscan over several hosts: a chain of all ranks in their order, slice after slice."""

from __future__ import annotations

from hbmcomm.collectives.hierarchical.between.steps import Range
from hbmcomm.collectives.hierarchical.task import Task, move
from hbmcomm.collectives.hierarchical.ways import WHOLE, Ways, scratch
from hbmcomm.collectives.hierarchical.wire import Exchange, Flight, Packet


def scan(ways: Ways, task: Task, excluded: bool = False) -> None:
    """Scan; `excluded`: Exscan."""

    def begin(number: int, entries: Range) -> Flight:
        return ways.wire.fly(_slice(ways, task, entries, excluded, number))

    slices = ways.slices(task.count, task.entry, WHOLE)
    ways.pipeline(slices, begin, lambda _: None)


def _slice(ways: Ways, task: Task, entries: Range, excluded: bool, number: int) -> Exchange:
    """Receive what the ranks before have reduced, add this rank's, and send it on."""
    rank, ranks = ways.layout.rank, len(ways.layout.host_of)
    count, nbytes = entries[1] - entries[0], (entries[1] - entries[0]) * task.entry
    send, recv = (each + entries[0] * task.entry for each in (task.send, task.recv))
    before, result = scratch(nbytes), scratch(nbytes)
    if rank:
        source = Packet(rank - 1, before.ctypes.data, nbytes)
        yield ways.wire.start([], [source], number)
        task.fold(count, before.ctypes.data, send, result.ctypes.data)
    else:
        move(result.ctypes.data, send, nbytes)
    if rank < ranks - 1:
        to = Packet(rank + 1, result.ctypes.data, nbytes)
        requests = ways.wire.start([to], [], number)
    else:
        requests = []
    if not excluded:
        move(recv, result.ctypes.data, nbytes)
    elif rank:
        move(recv, before.ctypes.data, nbytes)
    yield requests
