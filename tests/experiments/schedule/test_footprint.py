"""The memory that a launch's buffers take, counted before anything is allocated."""

from dataclasses import replace

from experiments.catalogue import spec
from experiments.model.launch import Launch
from experiments.schedule import footprint
from experiments.schedule.blocks import schedule

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


def test_one_kind_has_buffers_at_a_time() -> None:
    one, two = launch("allreduce", 2), launch("allreduce", 2, kinds=2)
    assert footprint.own_bytes(two, 0, 0) == footprint.own_bytes(one, 0, 0)


def test_16_ranks_of_64_mib_fit_the_mcdram_of_a_quadrant() -> None:
    asked = spec.restrict(spec.load("memory"), sizes=(64 * 2**20,), blocks=1)
    sixteen = next(b.launches[0] for b in schedule(asked, 1) if b.launches[0].ranks == 16)
    assert sixteen.measurement.cache == "rotating"
    assert len({cell.kind for cell in sixteen.cells}) == 4
    assert sum(footprint.own_bytes(sixteen, rank, 2**20) for rank in range(16)) < 3.5 * 2**30


def test_buffers_that_rotate_exceed_the_cache_twice() -> None:
    rotating = launch("bcast", 2, cache="rotating")
    send, recv = footprint.lengths(rotating, 0, 2**20)
    assert 4 * min(send, recv) >= 2 * 2**20
