"""The schedule alone: phases, skipped batches, plateaus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.training.daso.schedule import Schedule


def test_training_begins_and_ends_with_blocking_epochs() -> None:
    schedule = Schedule(6, warmup=2, cooldown=1)
    blocking, warming = [], []
    for _ in range(6):
        blocking.append(schedule.is_blocking)
        warming.append(schedule.is_warming_up)
        schedule.end_epoch(1.0)
    assert blocking == [True, True, False, False, False, True]
    assert warming == [True, True, False, False, False, False]


@given(st.integers(1, 9), st.integers(1, 40))
def test_an_exchange_begins_at_every_so_many_batches_of_an_epoch(skips: int, length: int) -> None:
    schedule = Schedule(1, 0, 0, skips=skips)
    begun = []
    for batch in range(length):
        schedule.end_batch()
        if schedule.begins_exchange:
            begun.append(batch)
    assert begun == list(range(0, length, skips))


def test_no_exchange_begins_in_a_blocking_epoch() -> None:
    schedule = Schedule(1, warmup=1, cooldown=0)
    schedule.end_batch()
    assert not schedule.begins_exchange


def test_a_plateau_halves_skipped_and_waited_batches_and_resets_them_at_one() -> None:
    schedule = Schedule(100, 0, 0, skips=8, wait=4, patience=1)
    pairs = []
    schedule.end_epoch(1.0)
    for _ in range(10):
        schedule.end_epoch(1.0)
        pairs.append((schedule.skips, schedule.wait))
    assert pairs[::2] == [(8, 4), (4, 2), (2, 1), (1, 1), (8, 4)]
    assert pairs[1::2] == [(4, 2), (2, 1), (1, 1), (8, 4), (4, 2)]


def test_a_loss_that_falls_by_more_than_the_threshold_is_on_no_plateau() -> None:
    schedule = Schedule(100, 0, 0, threshold=0.05, patience=0)
    for epoch in range(20):
        schedule.end_epoch(0.94**epoch)
    assert schedule.skips == 4
    schedule.end_epoch(0.94**19 * 0.96)
    assert schedule.skips == 2


@given(st.lists(st.floats(0, 10), max_size=30), st.integers(0, 30))
def test_a_restored_schedule_goes_on_as_the_saved_one(losses: list[float], at: int) -> None:
    one = Schedule(40, 2, 2, skips=7, patience=0)
    for loss in losses[:at]:
        one.end_epoch(loss)
    two = Schedule(40, 2, 2, skips=7, patience=0)
    two.load_state_dict(one.state_dict())
    for loss in losses[at:]:
        one.end_epoch(loss)
        two.end_epoch(loss)
    assert one.state_dict() == two.state_dict()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epochs": 0}, "epochs=0: give a number from 1 to inf"),
        ({"warmup": -1}, "warmup=-1"),
        ({"skips": 0}, "skips=0"),
        ({"skips": 4, "wait": 5}, "wait=5: give a number from 1 to 4"),
        ({"threshold": 1.5}, "threshold=1.5: give a number from 0 to 1"),
    ],
)
def test_a_number_out_of_range_is_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Schedule(**({"epochs": 5} | wrong))  # type: ignore[arg-type]
