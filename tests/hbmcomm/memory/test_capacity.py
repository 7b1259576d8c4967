"""A strict kind says no before the kernel kills."""

import pytest

import hbmcomm
from hbmcomm import OutOfMemory
from hbmcomm.memory import capacity, kernel

MIB = 2**20

pytestmark = pytest.mark.usefixtures("emulated_hbm")


def test_free_memory_is_less_than_all_of_it() -> None:
    total = hbmcomm.topology().node(0).total_bytes
    assert 0 < capacity.free_bytes((0,)) < total


def test_what_the_kernel_keeps_for_itself_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "_kernel_reserves", lambda: {0: 2**60})
    assert capacity.free_bytes((0,)) == 0


def test_what_does_not_fit_names_kind_node_asked_free_and_a_way_out() -> None:
    with pytest.raises(OutOfMemory) as failure:
        capacity.require(hbmcomm.resolve("hbw"), 2**50)
    for word in ("hbw", "1,073,741,824 MiB", "node 0", "free", "hbw_preferred"):
        assert word in str(failure.value)
    assert isinstance(failure.value, MemoryError)


def test_populating_makes_every_page_be_there() -> None:
    length = 70 * MIB  # more than one step
    kind = hbmcomm.resolve("hbw")
    address = kernel.map_private(length)
    try:
        capacity.populate(kind, address, length)
        assert set(kernel.nodes_of(address, length // kernel.PAGE)) == {0}
    finally:
        kernel.unmap(address, length)


def test_steps_cover_a_block_and_get_smaller_where_less_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = 2000 * MIB
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: free)
    monkeypatch.setattr(capacity, "headroom", lambda: 2**62)
    at, lengths = 0, []
    for start, length in capacity.steps(hbmcomm.resolve("hbw"), 1999 * MIB + 5):
        assert start == at
        at += length
        free -= length
        lengths.append(length)
    assert at == 1999 * MIB + 5
    assert lengths[0] == 64 * MIB and lengths[-2] == 2 * MIB
    assert lengths[:-1] == sorted(lengths[:-1], reverse=True)


@pytest.mark.parametrize("ranks", [2, 5, 16])
@pytest.mark.parametrize("each", [0.5, 0.9, 1.1, 1.5])
def test_ranks_that_take_the_last_of_a_node_all_at_once_never_take_more(
    monkeypatch: pytest.MonkeyPatch, ranks: int, each: float
) -> None:
    """All look, then all populate: the worst that can happen, again and again."""
    whole = free = 496 * MIB
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: max(0, free))
    monkeypatch.setattr(capacity, "headroom", lambda: 2**62)
    kind, wanted = hbmcomm.resolve("hbw"), int(each * whole / ranks)
    plans = [capacity.steps(kind, wanted) for _ in range(ranks)]
    refused = 0
    while plans:
        taking = []
        for plan in list(plans):
            try:
                taking.append(next(plan)[1])
            except (StopIteration, OutOfMemory) as end:
                refused += isinstance(end, OutOfMemory)
                plans.remove(plan)
        free -= sum(taking)
        assert free >= -capacity.SMALLEST_STEP * ranks  # which the margin of a node has
    assert bool(refused) == (each > 1)


def test_a_block_that_others_cut_short_says_what_was_had(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([300 * MIB, 100 * MIB])
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: next(left))
    plan = capacity.steps(hbmcomm.resolve("hbw"), 200 * MIB)
    assert next(plan) == (0, 18 * MIB)
    with pytest.raises(
        OutOfMemory, match=r"asked for 200 MiB on node 0 \(had 18 MiB of it.*100 MiB are free"
    ):
        next(plan)


def test_a_limit_of_the_cgroup_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "headroom", lambda: 3 * MIB)
    with pytest.raises(OutOfMemory, match=r"memory limit of this cgroup leaves 3 MiB.*--memory"):
        capacity.require(hbmcomm.resolve("hbw"), 4 * MIB)
