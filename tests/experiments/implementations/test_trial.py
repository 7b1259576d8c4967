"""Slots are used in turn, rewritten before their use, and checked after it."""

import numpy as np
import pytest
from mpi4py import MPI

from experiments.implementations.contender import Contender, plain
from experiments.implementations.trial import Rotation, Trial
from experiments.measure import operations
from experiments.measure.operations import Array, Ready
from experiments.model.errors import WrongResult

PATTERN = operations.ramp(8, "float32")
Slots = list[tuple[np.ndarray, np.ndarray]]


def slots(count: int) -> Slots:
    return [(np.full(8, -1, "float32"), np.full(8, -1, "float32")) for _ in range(count)]


def trial(
    buffers: Slots, contender: Contender | None = None, rotation: Rotation | None = None
) -> Trial:
    own = contender or plain(MPI.COMM_SELF)
    return Trial("allreduce", MPI.COMM_SELF, buffers, PATTERN, own, rotation)


def test_every_iteration_of_a_rotation_is_right() -> None:
    for operation in (trial(slots(1)), trial(slots(2)), trial(slots(5))):
        for iteration in range(12):
            operation.prepare(iteration)()
            operation.check()


def test_a_slot_is_rewritten_half_a_round_before_its_use() -> None:
    buffers = slots(4)
    operation = trial(buffers)
    assert [bool((send >= 0).all()) for send, _ in buffers] == [True, True, False, False]
    operation.prepare(0)
    assert (buffers[2][0] == PATTERN + operations.salt(0, 2)).all()


def test_contenders_that_share_slots_do_not_use_what_another_has_just_used() -> None:
    buffers, used, shared = slots(6), list[int](), Rotation()

    def noting(_: str, send: Array, recv: Array) -> Ready:
        slot = next(n for n, pair in enumerate(buffers) if pair[0] is send)

        def call() -> None:
            used.append(slot)
            np.copyto(recv, send)

        return Ready(call)

    quick, slow = (trial(buffers, noting, shared) for _ in range(2))
    for operation in (quick, slow):
        operation.check()
    for turn in range(5):
        for operation, count in ((quick, 4), (slow, 1)):
            for iteration in range(turn * count, (turn + 1) * count):
                salt = operations.salt(0, iteration + 3)
                call, number = operation.prepare(iteration), len(used)
                call()
                assert (buffers[(number + 3) % 6][0] == PATTERN + salt).all()
    assert used == [number % 6 for number in range(27)]
    for operation in (slow, quick):
        operation.check()


def test_a_wrong_element_names_operation_size_count_and_iteration() -> None:
    def spoils(_: str, send: Array, recv: Array) -> Ready:
        return Ready(lambda: np.copyto(recv, send), collect=lambda: recv[:2].fill(-1))

    operation = trial(slots(1), spoils)
    operation.prepare(7)()
    with pytest.raises(
        WrongResult, match="allreduce of 32 bytes left 2 wrong elements in iteration 8"
    ):
        operation.check()


def test_what_another_left_in_the_same_buffers_is_no_result() -> None:
    buffers = slots(1)
    idle = trial(buffers, lambda *_: Ready(lambda: None))
    for operation in (trial(buffers), trial(buffers)):
        operation.check()
    with pytest.raises(WrongResult, match="left 8 wrong elements"):
        idle.check()


def test_an_operation_is_made_once_for_each_slot_and_let_go_at_the_end() -> None:
    made, closed = [], []

    def counts(_: str, send: Array, recv: Array) -> Ready:
        made.append(id(recv))
        return Ready(lambda: np.copyto(recv, send), close=lambda: closed.append(id(recv)))

    operation = trial(slots(3), counts)
    for iteration in range(7):
        operation.prepare(iteration)()
    operation.close()
    assert len(set(made)) == 3 and made == closed


def test_an_operation_that_a_contender_has_not_is_no_trial() -> None:
    with pytest.raises(NotImplementedError):
        trial(slots(1), lambda *_: None)


def test_what_is_made_for_an_operation_rests_between_its_turns() -> None:
    awake = list[int]()

    def tiring(_: str, send: Array, recv: Array) -> Ready:
        slot = next(n for n, pair in enumerate(buffers) if pair[0] is send)

        def call() -> None:
            assert slot in awake
            recv[:] = send

        return Ready(call, wake=lambda: awake.append(slot), rest=lambda: awake.remove(slot))

    buffers = slots(2)
    operation = trial(buffers, tiring)
    for turn in range(3):
        assert awake == []
        with operation.awake():
            for iteration in range(3 * turn, 3 * turn + 3):  # the second slot is made in the block
                operation.prepare(iteration)()
            operation.check()
            assert sorted(awake) == [0, 1]
    assert awake == []
