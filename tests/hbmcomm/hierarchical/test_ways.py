"""The slices of a message, which go between hosts one after the other."""

from types import SimpleNamespace
from typing import Any

import pytest

from hbmcomm.hierarchical.settings import Settings
from hbmcomm.hierarchical.ways import SPLIT, WHOLE, Slicing, Ways
from hbmcomm.quantities import KIB, MIB


def ways(hosts: int, wire: Any = None, segment: int | None = None) -> Ways:
    layout: Any = SimpleNamespace(hosts=range(hosts), leaders=1)
    nothing: Any = None
    return Ways(layout, nothing, wire, Settings(segment_bytes=segment))


def lengths(nbytes: int, hosts: int, how: Slicing, segment: int | None = None) -> set[int]:
    """Bytes of all slices of a message."""
    slices = ways(hosts, segment=segment).slices(nbytes, 1, how)
    assert [end for _, end in slices] == [*(begin for begin, _ in slices[1:]), nbytes]
    return {end - begin for begin, end in slices}


@pytest.mark.parametrize("hosts", [2, 8, 64])
def test_slices_that_go_whole_do_not_grow_with_the_hosts(hosts: int) -> None:
    assert lengths(1 * MIB, hosts, WHOLE) == {128 * KIB}
    assert lengths(64 * MIB, hosts, WHOLE) == {512 * KIB}
    assert lengths(1 * MIB, hosts, WHOLE, segment=KIB) == {32 * KIB}
    assert lengths(64 * MIB, hosts, WHOLE, segment=64 * MIB) == {4 * MIB}


@pytest.mark.parametrize(("hosts", "kib"), [(2, 512), (8, 512), (16, 512), (64, 2048)])
def test_each_host_has_enough_of_a_slice_that_is_split(hosts: int, kib: int) -> None:
    assert lengths(2 * MIB, hosts, SPLIT) == {kib * KIB}
    assert lengths(16 * MIB, hosts, SPLIT) == {2 * MIB}


def test_the_last_slice_is_not_shorter_than_the_others() -> None:
    assert lengths(2 * MIB + 4, 4, SPLIT) == {512 * KIB + 1}
    assert lengths(513 * KIB, 4, SPLIT) == {256 * KIB + 512}
    assert lengths(0, 4, SPLIT) == {0}


def test_a_slice_begins_before_what_follows_the_one_before_and_few_are_on_their_way() -> None:
    events = list[str]()
    wire = SimpleNamespace(finish=lambda flight: events.append(f"finish {flight}"))

    def begin(number: int, _: Any) -> Any:
        events.append(f"begin {number}")
        return number

    ways(2, wire).pipeline(
        [(each, each + 1) for each in range(5)], begin, lambda each: events.append(f"end {each[0]}")
    )
    first = ["begin 0", "begin 1", "begin 2"]
    among = ["finish 0", "begin 3", "end 0", "finish 1", "begin 4", "end 1"]
    last = [f"{what} {each}" for each in (2, 3, 4) for what in ("finish", "end")]
    assert events == [*first, *among, *last]
