"""A step of training: what buckets hold, and what of their exchange the computation hides."""

import pytest

from hbmcomm.costmodel import Bucket, CostModelError, Layer, buckets, step

LAYERS = [Layer(1.0, 10), Layer(1.0, 0), Layer(1.0, 30), Layer(1.0, 5)]


def second_per_ten(nbytes: int) -> float:
    return nbytes / 10


def test_buckets_are_full_or_the_last() -> None:
    assert buckets(LAYERS, 20) == [Bucket(3, 40), Bucket(4, 5)]
    assert buckets(LAYERS, 1) == [Bucket(1, 10), Bucket(3, 30), Bucket(4, 5)]
    assert buckets(LAYERS, 1000) == [Bucket(4, 45)]
    assert buckets([Layer(1.0, 0)], 1) == []


def test_without_overlap_exchange_and_computation_add_up() -> None:
    times = step(LAYERS, second_per_ten, forward=2.0, bucket=1, overlapped=False)
    assert times.computation == 6
    assert times.communication == pytest.approx(4.5)
    assert times.whole == pytest.approx(10.5)
    assert times.exposed == pytest.approx(4.5)


def test_an_exchange_waits_for_its_gradients_and_for_the_exchange_before() -> None:
    times = step(LAYERS, second_per_ten, forward=2.0, bucket=1)
    # ends of the layers: 3, 4, 5, 6; exchanges: 3 to 4, 5 to 8, 8 to 8.5
    assert times.whole == pytest.approx(8.5)


def test_a_fast_network_hides_all_but_the_last_bucket() -> None:
    times = step(LAYERS, lambda nbytes: nbytes / 1000, bucket=1)
    assert times.exposed == pytest.approx(0.005)


def test_overlap_never_takes_longer() -> None:
    for bucket in (1, 15, 100):
        for rate in (1, 10, 1000):
            whole = [
                step(LAYERS, lambda n, rate=rate: n / rate, bucket=bucket, overlapped=early).whole  # type: ignore[misc]
                for early in (True, False)
            ]
            assert whole[0] <= whole[1]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(CostModelError, match="name a bucket of a byte or more"):
        step(LAYERS, second_per_ten, bucket=0)
    with pytest.raises(CostModelError):
        step([Layer(-1.0, 4)], second_per_ten)
