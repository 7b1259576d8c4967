"""The operations over several hosts, by name; and Barrier and Bcast themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hbmcomm.hierarchical import between, blocks, flat, reductions
from hbmcomm.hierarchical import between as rounds
from hbmcomm.hierarchical.between import Range, split, without_empty
from hbmcomm.hierarchical.task import Task
from hbmcomm.hierarchical.ways import WHOLE, Ways, scratch
from hbmcomm.hierarchical.wire import Flight, Place


def run(ways: Ways, task: Task) -> None:
    """Do a call; with one host, the core does it alone."""
    if len(ways.layout.hosts) == 1:
        ways.inside.run(task.call)
        return
    if flat.fits(ways, task):
        flat.run(ways, task)
    else:
        _RUN[task.name](ways, task)
    task.unpack()


def barrier(ways: Ways, _task: Task) -> None:
    ways.inside.barrier()
    lane = ways.layout.lane()
    if lane.number == 0:
        token = scratch(2)
        place = Place(lane.peers, ways.layout.host, token.ctypes.data, 1)
        steps = rounds.barrier(ways.layout.host, len(ways.layout.hosts))
        ways.wire.run(ways.wire.steps(steps, place))
    ways.inside.barrier()


def bcast(ways: Ways, task: Task) -> None:
    """On the root's host the data is shared first, elsewhere when it has come."""
    layout, root = ways.layout, task.root
    host = layout.host_of[root]
    lane = layout.lane(root)
    slices = ways.slices(task.count, task.entry, WHOLE)
    algorithm = between.of_bcast(ways.settings.algorithm, len(layout.hosts), host, len(slices))

    def begin(number: int, entries: Range) -> Flight | None:
        if layout.host == host:
            first, last = entries
            at, nbytes = task.recv + first * task.entry, (last - first) * task.entry
            ways.inside.bcast(at, nbytes, layout.inside.index(root))
        if lane.number is None:
            return None
        first, last = split(entries, len(lane.inside))[lane.number]
        steps = without_empty(algorithm(layout.host, len(layout.hosts), last - first))
        place = Place(lane.peers, layout.host, task.recv + first * task.entry, task.entry)
        only_sends = not any(each.receives for each in steps)
        return ways.wire.fly(ways.wire.steps(steps, place, number), only_sends)

    def end(entries: Range) -> None:
        if layout.host == host:
            return
        for inside, (first, last) in zip(
            lane.inside, split(entries, len(lane.inside)), strict=True
        ):
            ways.inside.bcast(task.recv + first * task.entry, (last - first) * task.entry, inside)

    ways.pipeline(slices, begin, end)


_RUN: dict[str, Callable[[Ways, Task], None]] = {
    "Barrier": barrier,
    "Bcast": bcast,
    "Gather": blocks.gather,
    "Gatherv": blocks.gather,
    "Scatter": blocks.scatter,
    "Scatterv": blocks.scatter,
    "Allgather": blocks.allgather,
    "Allgatherv": blocks.allgather,
    "Alltoall": blocks.alltoall,
    "Alltoallv": blocks.alltoall,
    "Reduce": reductions.reduce,
    "Allreduce": reductions.allreduce,
    "Reduce_scatter_block": reductions.reduce_scatter,
    "Reduce_scatter": reductions.reduce_scatter,
    "Scan": reductions.scan,
    "Exscan": partial(reductions.scan, excluded=True),
}
