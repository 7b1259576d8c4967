"""A heap hands out what is free, once, and joins what comes back."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.memory.heap import Heap, Stretch

WISHES = st.lists(
    st.tuples(st.integers(1, 300), st.sampled_from([1, 8, 64, 256]), st.booleans()), max_size=40
)


@given(WISHES)
def test_stretches_are_aligned_inside_and_apart(wishes: list[tuple[int, int, bool]]) -> None:
    heap, held = Heap(100, 3000), list[Stretch]()
    for nbytes, alignment, gives_back in wishes:
        taken = heap.take(nbytes, alignment)
        if taken is not None:
            assert taken.start % alignment == 0
            assert taken.start >= 100 and taken.end <= 3000
            assert taken.end - taken.start == nbytes
            assert all(taken.end <= other.start or other.end <= taken.start for other in held)
            held.append(taken)
        if gives_back and held:
            heap.give(held.pop(0))
        free = heap.free
        assert sum(each.end - each.start for each in (*free, *held)) == 2900
        assert all(a.end < b.start for a, b in itertools.pairwise(free))
    for each in held:
        heap.give(each)
    assert heap.free == (Stretch(100, 3000),)


def test_the_lowest_place_that_fits_is_taken_first() -> None:
    heap = Heap(0, 1000)
    first, second = heap.take(100, 1), heap.take(100, 1)
    assert (first, second) == (Stretch(0, 100), Stretch(100, 200))
    assert first is not None
    heap.give(first)
    assert heap.take(200, 1) == Stretch(200, 400)
    assert heap.take(50, 1) == Stretch(0, 50)


def test_what_does_not_fit_takes_nothing() -> None:
    heap = Heap(0, 1000)
    assert heap.take(1001, 1) is None
    assert heap.free == (Stretch(0, 1000),)


def test_what_is_collected_while_another_is_taken_goes_back_whole() -> None:
    heap = Heap(0, 1000)
    old = [heap.take(100, 1) for _ in range(4)]
    assert None not in old
    left = [each for each in old if each is not None and each.start in (0, 200)]

    class Wish(int):
        """Python may collect an array at any step of a sum that `take` does."""

        def __radd__(self, start: int) -> int:
            while left:
                heap.give(left.pop())
            return start + int(self)

    assert heap.take(Wish(600), 1) == Stretch(400, 1000)
    assert heap.free == (Stretch(0, 100), Stretch(200, 300))


def test_threads_take_and_give_without_losing_a_byte() -> None:
    heap = Heap(0, 64)

    def often(_: int) -> None:
        for _ in range(2000):
            taken = heap.take(8, 1)
            assert taken is not None
            heap.give(taken)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(often, range(8)))
    assert heap.free == (Stretch(0, 64),)
