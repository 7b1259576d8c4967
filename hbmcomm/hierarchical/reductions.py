"""Reduce, Allreduce and Reduce_scatter over several hosts.

Ranks of a host reduce among themselves in their order; then leaders reduce the results. Every entry
is computed by one leader, or by all of them from the same numbers in the same order, so that all
ranks get the same bits, in every run with the same hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from hbmcomm.hierarchical import between
from hbmcomm.hierarchical.between import Algorithm, Range, split, without_empty
from hbmcomm.hierarchical.grouping import Lane
from hbmcomm.hierarchical.task import Task, move
from hbmcomm.hierarchical.ways import SPLIT, WHOLE, Ways, scratch
from hbmcomm.hierarchical.wire import Exchange, Flight, Packet, Place
from hbmcomm.transports.operand import Part


def allreduce(ways: Ways, task: Task) -> None:
    algorithm = between.of_allreduce(
        ways.settings.algorithm, len(ways.layout.hosts), task.nbytes // ways.layout.leaders
    )
    reduction = _Reduction(ways, task, ways.layout.lane(), algorithm)
    slices = ways.slices(task.count, task.entry, SPLIT)
    ways.pipeline(slices, reduction.begin, reduction.share)


def reduce(ways: Ways, task: Task) -> None:
    layout, root = ways.layout, task.root
    slices = ways.slices(task.count, task.entry, WHOLE)
    hosts, host = len(layout.hosts), layout.host_of[root]
    algorithm = between.of_reduce(ways.settings.algorithm, hosts, host, len(slices))
    lane = layout.lane(root)
    reduction = _Reduction(ways, task, lane, algorithm)

    def gather(entries: Range) -> None:
        if layout.is_here(root) and len(lane.inside) > 1:
            reduction.gather(entries)

    ways.pipeline(slices, reduction.begin, gather)


class _Reduction:
    """The slices of a reduction."""

    def __init__(self, ways: Ways, task: Task, lane: Lane, algorithm: Algorithm) -> None:
        self._ways, self._task, self._lane, self._algorithm = ways, task, lane, algorithm
        # the core cannot reduce and scatter in place
        fits = task.recv and (len(lane.inside) == 1 or task.recv != task.send)
        self._own = scratch(task.nbytes if lane.number is not None and not fits else 0)
        self._at = task.recv if fits else self._own.ctypes.data
        """Address of all entries on a leader, from the host's result to that of all."""

    def begin(self, number: int, entries: Range) -> Flight | None:
        """Reduce a slice inside the host, and start its way between hosts."""
        task, lane, (first, last) = self._task, self._lane, entries
        source = task.send + first * task.entry
        if len(lane.inside) == 1:
            target = self._at + first * task.entry if lane.number is not None else 0
            self._ways.inside.reduce(task.call, last - first, source, target, lane.inside[0])
        else:
            parts = self._parts(entries)
            begin, nbytes = parts[self._ways.layout.index]
            target = self._at + first * task.entry + begin
            count = nbytes // task.entry
            self._ways.inside.reduce_scatter(task.call, count, source, target, parts)
        if lane.number is None:
            return None
        layout = self._ways.layout
        begin, end = split(entries, len(lane.inside))[lane.number]
        place = Place(lane.peers, layout.host, self._at + begin * task.entry, task.entry, task.fold)
        steps = without_empty(self._algorithm(layout.host, len(layout.hosts), end - begin))
        only_sends = not any(each.receives for each in steps)
        return self._ways.wire.fly(self._ways.wire.steps(steps, place, number), only_sends)

    def share(self, entries: Range) -> None:
        """Give a slice of the result to the ranks of this host."""
        task, lane, (first, last) = self._task, self._lane, entries
        at = task.recv + first * task.entry
        if len(lane.inside) == 1:
            self._ways.inside.bcast(at, (last - first) * task.entry, lane.inside[0])
            return
        parts = self._parts(entries)
        begin, nbytes = parts[self._ways.layout.index]
        own = self._at + first * task.entry + begin
        self._ways.inside.move("Allgatherv", nbytes, own, at, recv_parts=parts)

    def gather(self, entries: Range) -> None:
        """Give the root, the first leader of this host, the parts of the others."""
        task, lane, first = self._task, self._lane, entries[0]
        parts = self._parts(entries)
        begin, nbytes = parts[self._ways.layout.index]
        own = self._at + first * task.entry + begin
        at, given = 0, None
        if self._ways.layout.rank == task.root:
            at, given = task.recv + first * task.entry, parts
        self._ways.inside.move("Gatherv", nbytes, own, at, lane.inside[0], None, given)

    def _parts(self, entries: Range) -> list[Part]:
        """The part of each rank of this host, in bytes from the slice's first entry."""
        entry, found = self._task.entry, [(0, 0)] * len(self._ways.layout.inside)
        ranges = split(entries, len(self._lane.inside))
        for inside, (begin, end) in zip(self._lane.inside, ranges, strict=True):
            found[inside] = ((begin - entries[0]) * entry, (end - begin) * entry)
        return found


def reduce_scatter(ways: Ways, task: Task) -> None:
    """Blocks are sorted by host; the first leader of each reduces those of its host's ranks."""
    layout, entry = ways.layout, task.entry
    parts = task.sent_parts(len(layout.host_of))
    order = [rank for ranks in layout.hosts for rank in ranks]
    total = sum(nbytes for _, nbytes in parts)
    source, sorted_blocks = task.send, scratch(0)
    if not _is_consecutive([parts[rank] for rank in order]):
        sorted_blocks = scratch(total)
        source = sorted_blocks.ctypes.data
        _sort(parts, order, task.send, source)
    lane = layout.lane()
    leads = lane.number == 0
    reduced = scratch(total if leads else 0)
    at = reduced.ctypes.data if leads else 0
    ways.inside.reduce(task.call, total // entry, source, at, lane.inside[0])
    pieces, ends = list[Range](), 0
    for ranks in layout.hosts:
        begin, ends = ends, ends + sum(parts[rank][1] for rank in ranks) // entry
        pieces.append((begin, ends))
    if leads:
        place = Place(lane.peers, layout.host, at, entry, task.fold)
        ways.wire.run(
            ways.wire.steps(without_empty(between.reduce_scatter(layout.host, pieces)), place)
        )
    own = pieces[layout.host][0] * entry
    blocks = list[Part]()
    for rank in layout.inside:
        blocks.append((own, parts[rank][1]))
        own += parts[rank][1]
    here = blocks if leads else None
    ways.inside.move("Scatterv", parts[layout.rank][1], at, task.recv, lane.inside[0], here)


def _is_consecutive(parts: Sequence[Part]) -> bool:
    end = 0
    for offset, nbytes in parts:
        if nbytes and offset != end:
            return False
        end += nbytes
    return True


def _sort(parts: Sequence[Part], order: Sequence[int], source: int, to: int) -> None:
    for rank in order:
        offset, nbytes = parts[rank]
        move(to, source + offset, nbytes)
        to += nbytes


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
