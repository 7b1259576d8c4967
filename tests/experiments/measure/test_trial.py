"""Slots are used in turn, rewritten before their use, and checked after it."""

import numpy as np
import pytest
from mpi4py import MPI

from experiments.measure import operations
from experiments.measure.trial import Trial, WrongResult

PATTERN = operations.ramp(8, "float32")
Slots = list[tuple[np.ndarray, np.ndarray]]


def slots(count: int) -> Slots:
    return [(np.full(8, -1, "float32"), np.full(8, -1, "float32")) for _ in range(count)]


def trial(buffers: Slots, operation: str = "allreduce") -> Trial:
    return Trial(operation, MPI.COMM_SELF, buffers, PATTERN)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_iteration_of_a_rotation_is_right(count: int) -> None:
    each = trial(slots(count))
    for iteration in range(12):
        each.prepare(iteration)()
        each.check()


def test_a_slot_is_rewritten_half_a_round_before_its_use() -> None:
    buffers = slots(4)
    each = trial(buffers)
    assert [bool((send >= 0).all()) for send, _ in buffers] == [True, True, False, False]
    each.prepare(0)
    assert (buffers[2][0] == PATTERN + operations.salt(0, 2)).all()


def test_slots_are_used_in_turn() -> None:
    buffers = slots(3)
    each = trial(buffers)
    for iteration in range(4):
        before = [recv.copy() for _, recv in buffers]
        each.prepare(iteration)()
        changed = [(recv != old).any() for (_, recv), old in zip(buffers, before, strict=True)]
        assert changed == [slot == iteration % 3 for slot in range(3)]


def test_a_wrong_element_names_operation_size_count_and_iteration() -> None:
    buffers = slots(1)
    each = trial(buffers)
    each.prepare(7)()
    buffers[0][1][:2] += 1
    with pytest.raises(
        WrongResult, match="allreduce of 32 bytes left 2 wrong elements in iteration 7"
    ):
        each.check()


def test_a_result_of_an_earlier_iteration_is_wrong() -> None:
    each = trial(slots(1))
    each.prepare(0)()
    each.prepare(1)  # the operation that should follow is left out
    with pytest.raises(WrongResult, match="left 8 wrong elements"):
        each.check()


def test_another_call_than_the_transports_own_can_be_tried() -> None:
    called = []
    each = Trial(
        "allreduce", MPI.COMM_SELF, slots(1), PATTERN, lambda *slot: lambda: called.append(slot)
    )
    each.prepare(0)()
    assert len(called) == 1
    with pytest.raises(WrongResult):
        each.check()
