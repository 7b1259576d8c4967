"""The memory that a launch's buffers take, counted before anything is allocated."""

from dataclasses import replace

from experiments import footprint, spec
from experiments.schedule import Launch, schedule

KIB = 1024


def launch(operation: str, ranks: int, cache: str = "warm", kinds: int = 1) -> Launch:
    asked = spec.restrict(spec.load("quick"), sizes=(KIB, 4 * KIB), blocks=1)
    first = schedule(asked, 1)[0].launches[0]
    cell = replace(first.cells[0], operation=operation, bytes=4 * KIB, kind="regular")
    cells = (cell, replace(cell, bytes=KIB), replace(cell, kind="hbw"))[: 1 + kinds]
    measurement = replace(first.measurement, cache=cache)
    return replace(first, ranks=ranks, cells=cells, measurement=measurement)


def test_the_largest_cell_decides_and_the_root_has_more() -> None:
    gather = launch("gather", 4)
    assert footprint.lengths(gather, 0, 0) == (1024, 4 * 1024)
    assert footprint.lengths(gather, 1, 0) == (1024, 1024)  # the copy that bounds it has both
    assert footprint.own_bytes(gather, 0, 0) == 5 * 4 * KIB
    assert footprint.longest_send(gather) == 1024
    assert footprint.longest_send(launch("alltoall", 4)) == 4 * 1024


def test_each_kind_has_buffers_of_its_own() -> None:
    one, two = launch("allreduce", 2), launch("allreduce", 2, kinds=2)
    assert footprint.own_bytes(two, 0, 0) == 2 * footprint.own_bytes(one, 0, 0)


def test_buffers_that_rotate_exceed_the_cache_twice() -> None:
    rotating = launch("bcast", 2, cache="rotating")
    send, recv = footprint.lengths(rotating, 0, 2**20)
    assert 4 * min(send, recv) >= 2 * 2**20
