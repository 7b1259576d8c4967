"""The heap hands out what is free, once; a naive model knows what it should do."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hbmcomm.errors import HbmcommError
from hbmcomm.memory.policy import kernel
from hbmcomm.memory.shared.heap import Heap

LINE, STEP, STEPS = 64, 4096, 24
END = STEP * STEPS


class Against(RuleBasedStateMachine):
    """Lines and steps one by one, against extents in a tree."""

    @initialize()
    def begin(self) -> None:
        self.address = kernel.map_private(END)
        self.heap = Heap(self.address, END, STEP)
        self.used: set[int] = set()  # lines
        self.taken: dict[int, int] = {}
        self.parked: list[range] = []
        self.populated: set[int] = set()
        self.holds: dict[int, range] = {}

    def teardown(self) -> None:
        if hasattr(self, "address"):
            kernel.unmap(self.address, END)

    @rule(nbytes=st.integers(1, 9000), alignment=st.sampled_from([1, 64, 128, 1024, 4096]))
    def take(self, nbytes: int, alignment: int) -> None:
        lines, at = -(-nbytes // LINE), max(alignment, LINE) // LINE
        starts = range(0, END // LINE - lines + 1, at)
        fits = (start for start in starts if not self.used & set(range(start, start + lines)))
        expected = next(fits, None)
        found = self.heap.take(nbytes, alignment)
        assert found == (None if expected is None else expected * LINE)
        if expected is not None:
            self.taken[expected] = lines
            self.used |= set(range(expected, expected + lines))

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def give(self, data: st.DataObject) -> None:
        start = data.draw(st.sampled_from(sorted(self.taken)))
        lines = range(start, start + self.taken.pop(start))
        assert self.heap.give(start * LINE)
        assert not self.heap.give(start * LINE)
        if any(set(lines) & set(held) for held in self.holds.values()):
            self.parked.append(lines)
        else:
            self.used -= set(lines)

    @rule(first=st.integers(0, END // LINE - 1), lines=st.integers(1, 100))
    def hold(self, first: int, lines: int) -> None:
        held = range(first, min(first + lines, END // LINE))
        number = self.heap.hold(held.start * LINE, held.stop * LINE)
        self.holds[number] = held
        free = sorted(set(held) - self.used)
        while free:  # runs of free lines stay together until no range holds any of them
            run = next((n for n in range(1, len(free)) if free[n] != free[n - 1] + 1), len(free))
            self.parked.append(range(free[0], free[0] + run))
            free = free[run:]
        self.used |= set(held)

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.holds)))
        del self.holds[number]
        self.heap.release(number)
        with pytest.raises(OSError):
            self.heap.release(number)
        held = set().union(*self.holds.values())
        for lines in [each for each in self.parked if not held & set(each)]:
            self.parked.remove(lines)
            self.used -= set(lines)

    @rule(first=st.integers(0, STEPS - 1), steps=st.integers(1, 6))
    def populate(self, first: int, steps: int) -> None:
        last = min(first + steps, STEPS)
        self.heap.populated(first * STEP, last * STEP)
        self.populated |= set(range(first, last))

    @invariant()
    def agrees(self) -> None:
        usage = self.heap.usage
        parked = sum(map(len, self.parked))
        assert usage.taken == (len(self.used) - parked) * LINE
        assert usage.parked == parked * LINE
        assert usage.populated == len(self.populated) * STEP
        per = STEP // LINE
        idle = {s for s in self.populated if not self.used & set(range(s * per, (s + 1) * per))}
        assert usage.idle == len(idle) * STEP
        missing = [s for s in range(STEPS) if s not in self.populated]
        run = self.heap.missing(0, END)
        assert (run is None) == (not missing)
        if run is not None:
            assert run[0] == missing[0] * STEP
            assert not self.populated & set(range(run[0] // STEP, run[1] // STEP))


Against.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
test_it_does_what_a_naive_model_does = Against.TestCase


def test_what_does_not_fit_takes_nothing() -> None:
    heap = Heap(0x10000, 10 * STEP, STEP)
    assert heap.take(10 * STEP + 1, 1) is None
    assert heap.take(2**64 - 1, 1) is None
    assert heap.usage.extents == 0
    with pytest.raises(OSError):
        heap.take(100, 48)
    with pytest.raises(OSError):
        Heap(0x10000, 100, STEP)


def test_what_was_never_taken_cannot_be_given_back() -> None:
    heap = Heap(0x10000, 10 * STEP, STEP)
    assert heap.take(1000, 1) == 0
    assert not any(heap.give(offset) for offset in (64, 1024, 5000, 10 * STEP, 2**63))
    assert heap.usage.taken == 1024


def test_threads_take_and_give_without_losing_a_byte() -> None:
    heap = Heap(0x10000, 8 * STEP, STEP)

    def often(_: int) -> None:
        for _ in range(2000):
            taken = heap.take(STEP, STEP)
            assert taken is not None and heap.give(taken)

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(often, range(8)))
    assert heap.usage[:2] == (8 * STEP, 0)


def test_a_child_of_a_fork_is_refused_and_changes_nothing() -> None:
    heap = Heap(0x10000, 10 * STEP, STEP)
    assert heap.take(1000, 1) == 0
    child = os.fork()
    if not child:
        try:
            heap.take(1, 1)
        except HbmcommError as error:
            right = "fork of a rank" in str(error) and heap.is_foreign and not heap.give(0)
            os._exit(0 if right else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert not heap.is_foreign and heap.give(0)
