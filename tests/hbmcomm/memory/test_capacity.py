"""A strict kind says no before the kernel kills."""

from __future__ import annotations

import pytest

import hbmcomm
from hbmcomm import OutOfMemory
from hbmcomm.memory import capacity, kernel

MIB = 2**20

pytestmark = pytest.mark.usefixtures("emulated_hbm")


def test_free_memory_is_less_than_all_of_it() -> None:
    total = hbmcomm.topology().node(0).total_bytes
    assert 0 < capacity.free_bytes((0,)) < total


def test_what_fits_is_granted() -> None:
    capacity.require(hbmcomm.resolve("hbw"), MIB)


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


def test_a_limit_of_the_cgroup_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "headroom", lambda: 3 * MIB)
    with pytest.raises(OutOfMemory, match=r"memory limit of this cgroup leaves 3 MiB.*--memory"):
        capacity.require(hbmcomm.resolve("hbw"), 4 * MIB)
