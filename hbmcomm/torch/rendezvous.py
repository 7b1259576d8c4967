"""Exchanges values between ranks through torch's store, as other communicators do through MPI."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

from torch import distributed


def allgather(
    store: distributed.Store, rank: int, size: int, timeout: timedelta
) -> Callable[[Any], list[Any]]:
    """A function that gives every rank the values of all, in the order of the ranks.

    Args:
        store: Only these ranks use it, for this purpose.
        timeout: How long a rank waits for the others.
    """
    numbers = count()

    def gather(value: Any) -> list[Any]:
        number = next(numbers)
        store.set(f"{number}/{rank}", pickle.dumps(value))
        keys = [f"{number}/{each}" for each in range(size)]
        store.wait(keys, timeout)
        return [pickle.loads(each) for each in store.multi_get(keys)]

    return gather
