"""The kernel's word on where the pages of an array are, by whichever way it allows."""

import mmap
import os

import numpy as np
import pytest

import hbmcomm
from hbmcomm.memory import placement as module
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kernel import PAGE

METHODS = list(module.METHODS)
REFUSED_ONE_BY_ONE = """
import numpy as np
import hbmcomm
from hbmcomm.memory import placement
def tell():
    print(hbmcomm.placement_method(), hbmcomm.placement(np.ones(100_000)))
tell()
for calls in (("move_pages",), ("get_mempolicy", "mbind")):
    refusing.refuse(calls, "EPERM")
    tell()
placement.METHODS.pop("numa_maps")
try:
    tell()
except hbmcomm.PlacementUnknown as error:
    print(error)
"""


@pytest.fixture(params=METHODS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way in turn, as the only one there is."""
    monkeypatch.setattr(module, "METHODS", {request.param: module.METHODS[request.param]})
    return str(request.param)


QUESTIONS = (hbmcomm.placement, hbmcomm.placement_method, hbmcomm.node_of, hbmcomm.source)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("value", [3, [1.0], b"bytes"])
def test_a_value_that_is_no_array_is_refused(question, value) -> None:
    with pytest.raises(TypeError, match=f"needs an array of NumPy, not {type(value).__name__}"):
        question(value)


def fresh(pages: int) -> np.ndarray:
    """Pages that nobody has touched."""
    mapping = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapping.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(mapping, np.uint8)


def test_written_pages_are_counted_to_the_byte(way: str) -> None:
    array = hbmcomm.full(100_001, 1, "uint8", kind="regular")
    assert hbmcomm.placement_method() == way
    assert hbmcomm.placement(array) == {0: 100_001}


def test_untouched_pages_are_nowhere(way: str) -> None:
    array = fresh(10)
    assert hbmcomm.placement(array) == {}
    array[3 * PAGE : 5 * PAGE] = 1
    assert hbmcomm.placement(array) == {0: 2 * PAGE}


def test_a_page_only_read_is_nowhere_either(way: str) -> None:
    array = fresh(4)
    assert array.sum() == 0
    assert hbmcomm.placement(array) == {}


def test_a_view_counts_what_it_spans(way: str) -> None:
    array = hbmcomm.full((100, PAGE), 1, "uint8", kind="regular")
    assert hbmcomm.placement(array[10:20]) == {0: 10 * PAGE}
    assert hbmcomm.placement(array[::-1]) == {0: 100 * PAGE}
    assert hbmcomm.placement(array[5, 100:200]) == {0: 100}


def test_shared_memory_counts(way: str) -> None:
    array = np.frombuffer(mmap.mmap(-1, 4 * PAGE), np.uint8)
    array[:] = 1
    assert hbmcomm.placement(array) == {0: 4 * PAGE}


@pytest.mark.parametrize("kind", ["regular", "hbw", "hbw_preferred", "hbw_interleave"])
def test_arrays_of_an_arena_count_to_the_byte(kind: str, monkeypatch) -> None:
    monkeypatch.setenv("MEMKIND_HBW_NODES", "0")
    shared, _ = create_arena(lambda value: [value], 0, 1, lambda: hbmcomm.resolve(kind), PAGE)
    small, large = (np.asarray(shared.allocate(size))[:size] for size in (100_001, 9 * 2**20))
    for array in (small, large):
        array.fill(1)
        assert hbmcomm.source(array) == hbmcomm.source(array[7:]) == "arena"
    for name, method in module.METHODS.items():
        monkeypatch.setattr(module, "METHODS", {name: method})
        for array in (small, large):
            assert hbmcomm.placement(array) == {0: array.nbytes}, name
        assert hbmcomm.placement(small[5:9000]) == {0: 8995}, name


def test_an_empty_array_is_nowhere(way: str) -> None:
    assert hbmcomm.placement(np.empty(0)) == {}


def test_more_pages_than_are_asked_for_at_once(way: str, monkeypatch) -> None:
    monkeypatch.setattr(module, "PAGES_AT_ONCE", 3)
    assert hbmcomm.placement(hbmcomm.full(10 * PAGE, 1, "uint8", kind="regular")) == {0: 10 * PAGE}


def test_what_a_container_refuses_is_asked_another_way_and_each_refusal_is_named(python) -> None:
    result = python(REFUSED_ONE_BY_ONE)
    *shown, refusal = result.stdout.splitlines()
    assert shown == [f"{method} {{0: 800000}}" for method in METHODS], result.stderr
    assert "refused: move_pages" in refusal and "get_mempolicy (" in refusal
    assert "SYS_NICE" in refusal


def test_a_mapping_on_several_nodes_is_dealt_out_to_the_last_byte(monkeypatch) -> None:
    monkeypatch.setattr(module, "METHODS", {"numa_maps": module.METHODS["numa_maps"]})
    array = hbmcomm.full(100_001, 1, "uint8", kind="regular")
    monkeypatch.setattr(module, "mappings", lambda: [(0, 2**63, {0: 3, 4: 2, 5: 2})])
    placement = hbmcomm.placement(array)
    assert set(placement) == {0, 4, 5}
    assert sum(placement.values()) == 100_001


def test_a_mapped_file_may_have_a_name_in_any_encoding(way: str, tmp_path) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/caf\xe9")
    other = np.memmap(name, np.uint8, "w+", shape=PAGE)
    array = hbmcomm.full(100_001, 1, "uint8", kind="regular")
    assert hbmcomm.placement(array) == {0: 100_001}
    del other


def test_the_node_of_a_page_is_known_once_it_is_touched() -> None:
    array = hbmcomm.full(10, 1.0, kind="regular")
    assert hbmcomm.node_of(array) in (None, *hbmcomm.placement(array))
    assert hbmcomm.node_of(np.empty(0)) is None
