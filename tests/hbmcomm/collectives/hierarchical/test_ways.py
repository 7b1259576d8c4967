"""The slices of a message, which go between hosts one after the other."""

from types import SimpleNamespace
from typing import Any

import pytest

from hbmcomm.collectives.hierarchical.settings import Settings
from hbmcomm.collectives.hierarchical.ways import SPLIT, WHOLE, Ways
from hbmcomm.quantities import KIB


def lengths(nbytes: int, hosts: int, least: int, segment: int = 512 * KIB) -> set[int]:
    """Bytes of all slices of a message but the last."""
    layout: Any = SimpleNamespace(hosts=range(hosts), leaders=1)
    nothing: Any = None
    ways = Ways(layout, nothing, nothing, Settings(segment_bytes=segment))
    slices = ways.slices(nbytes, 1, least)
    assert [end for _, end in slices] == [begin for begin, _ in slices[1:]] + [nbytes]
    return {end - begin for begin, end in slices[:-1] or slices}


@pytest.mark.parametrize("hosts", [2, 8, 64])
def test_slices_that_go_whole_do_not_grow_with_the_hosts(hosts: int) -> None:
    assert lengths(1024 * KIB, hosts, WHOLE) == {128 * KIB}
    assert lengths(65536 * KIB, hosts, WHOLE) == {512 * KIB}
    assert lengths(1024 * KIB, hosts, WHOLE, segment=KIB) == {32 * KIB}


@pytest.mark.parametrize(("hosts", "kib"), [(2, 256), (8, 256), (16, 512), (64, 2048)])
def test_each_host_has_enough_of_a_slice_that_is_split(hosts: int, kib: int) -> None:
    assert lengths(8192 * KIB, hosts, SPLIT) == {max(kib, 512) * KIB}
    assert lengths(2048 * KIB, hosts, SPLIT) == {kib * KIB}
