"""Exchanges values between ranks through torch's store, as other communicators do through MPI.

Any user who reaches the store can write into it, so values are JSON of the types below.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
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
    tuple[tuple[int, str], str],
    tuple[tuple[int, int] | None, Problem | None],
)
"""Of the values that ranks exchange; no value is of two of them."""


class Exchange:
    """A function that gives every rank the values of all, in the order of the ranks.

    It raises HbmcommError where a value is not of the type of this rank's own.
    """

    def __init__(self, store: distributed.Store, rank: int, size: int, timeout: timedelta) -> None:
        """
        Args:
            store: Only these ranks use it, for this purpose.
            timeout: How long a rank waits for the others.
        """
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._calls = 0

    def __call__(self, value: Any) -> list[Any]:
        own = typed_json.write(value)
        kind = _kind_of(own)
        self._store.set(f"{self._calls}/{self._rank}", own)
        keys = [f"{self._calls}/{peer}" for peer in range(self._size)]
        self._calls += 1
        self._store.wait(keys, self._timeout)
        return [_read(kind, peer, line) for peer, line in enumerate(self._store.multi_get(keys))]

    def forget(self) -> None:
        """Delete this rank's values, once all ranks have read them.

        A later group may get the same store with the same prefix, and would read them. A store that
        cannot delete, such as etcd's, keeps them.
        """
        with suppress(RuntimeError):
            for number in range(self._calls):
                self._store.delete_key(f"{number}/{self._rank}")


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
