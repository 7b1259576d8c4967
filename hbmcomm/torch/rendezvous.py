"""Exchanges values between ranks through torch's store, as other communicators do through MPI.

Any user who reaches the store can write into it, so values are JSON of the types below.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any

from torch import distributed

from hbmcomm import typed_json
from hbmcomm.errors import HbmcommError
from hbmcomm.memory.consensus import Problem
from hbmcomm.memory.handshake import Answer
from hbmcomm.transports.native import Setting

_KINDS = (
    Answer,
    Problem | None,
    tuple[int, str],
    tuple[tuple[int, int] | None, Problem | None],
)
"""Of the values that ranks exchange; no value is of two of them."""


def allgather(
    store: distributed.Store, rank: int, size: int, timeout: timedelta
) -> Callable[[Any], list[Any]]:
    """A function that gives every rank the values of all, in the order of the ranks.

    It raises HbmcommError where a value is not of the type of this rank's own.

    Args:
        store: Only these ranks use it, for this purpose.
        timeout: How long a rank waits for the others.
    """
    numbers = count()

    def gather(value: Any) -> list[Any]:
        number = next(numbers)
        own = typed_json.write(value)
        kind = _kind_of(own)
        store.set(f"{number}/{rank}", own)
        keys = [f"{number}/{peer}" for peer in range(size)]
        store.wait(keys, timeout)
        return [_read(kind, peer, line) for peer, line in enumerate(store.multi_get(keys))]

    return gather


def _kind_of(line: bytes) -> Any:
    for kind in _KINDS:
        with suppress(ValueError):
            typed_json.read(kind, line, Setting | None)
            return kind
    raise TypeError(f"ranks exchange no values such as {line!r}")


def _read(kind: Any, rank: int, line: bytes) -> Any:
    try:
        return typed_json.read(kind, line, Setting | None)
    except ValueError as error:
        raise HbmcommError(
            f"hbm: what torch's store holds of rank {rank} was not written by this version of "
            f"hbmcomm ({error}); install one version on all ranks, and let nobody else reach the "
            "store (MASTER_ADDR, MASTER_PORT)"
        ) from None
