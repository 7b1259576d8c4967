"""Rank program: what fails on one rank alone is an error on all, and nobody waits for anybody."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

from hbmcomm import CallMismatch, Communicator, HbmcommError, options
from hbmcomm.hierarchical import settings
from hbmcomm.hierarchical import transport as hierarchical
from hbmcomm.memory import idle_limit
from hbmcomm.transports import native, opening, tuning
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
SOON = 5.0  # seconds

os.environ[idle_limit.VARIABLE] = "0"  # no memory is populated that is not in use
parent = Communicator(WORLD, "regular", "direct")

MAKERS: dict[str, Callable[[], Any]] = {
    "Communicator": lambda: Communicator(WORLD, "regular", "direct"),
    "Dup": parent.Dup,
    "Split": lambda: parent.Split(0, -RANK),
    "Create": lambda: parent.Create(parent.Get_group()),
}


def works(comm: Any) -> bool:
    y = np.zeros(3)
    comm.Allreduce(np.ones(3), y)
    return bool((y == RANKS).all())


def all_fail_alike(failing: contextlib.AbstractContextManager[Any], words: str) -> None:
    """Every rank gets an error with these words, soon; it can be done once nothing fails."""
    with failing:
        for name, make in MAKERS.items():
            began = time.monotonic()
            try:
                make()
            except HbmcommError as error:
                assert words in str(error), f"{name}: {error}"
            else:
                raise AssertionError(f"{name} of {RANKS} ranks: no error")
            assert time.monotonic() - began < SOON
            assert works(parent)
        with refused(HbmcommError, words):  # auto goes on only where memory cannot be shared
            Communicator(WORLD, "regular", "auto")
    for name, make in MAKERS.items():
        comm = make()
        assert works(comm), name
        comm.Free()


@contextlib.contextmanager
def on(rank: int, patch: Any) -> Iterator[None]:
    with patch if rank == RANK else contextlib.nullcontext():
        yield


class Poor:
    """The core, without memory for a communicator."""

    def __getattr__(self, name: str) -> Any:
        return (lambda _: native.ffi.NULL) if name == "hbm_open" else getattr(CORE, name)


CORE = native.lib


@promise
def an_unreadable_setting() -> None:
    for rank in range(RANKS):
        nonsense = mock.patch.dict(os.environ, {"HBMCOMM_EAGER_BYTES": "nonsense"})
        all_fail_alike(on(rank, nonsense), "HBMCOMM_EAGER_BYTES=nonsense")


@promise
def a_folder_of_shared_memory_that_cannot_be_used() -> None:
    """A variable with a bad value is an error with every transport that reads it."""
    for rank in range(RANKS):
        for transport in ("auto", "direct", "hierarchical"):
            named = mock.patch.dict(os.environ, {"HBMCOMM_SHM": "/proc"})
            words = f"rank {rank}: HBMCOMM_SHM=/proc: it is neither on a tmpfs nor"
            with on(rank, named), refused(HbmcommError, words):
                Communicator(WORLD, "regular", transport)


@promise
def any_unreadable_setting_of_direct() -> None:
    for variable in (*(entry.variable for entry in tuning.TABLE), idle_limit.VARIABLE):
        with on(0, mock.patch.dict(os.environ, {variable: "nonsense"})):
            for transport in ("auto", "direct"):
                with refused(HbmcommError, f"rank 0: {variable}=nonsense"):
                    Communicator(WORLD, "regular", transport)


@promise
def any_unreadable_setting_of_hierarchical() -> None:
    """Where auto takes it: rank 0 is on a host of its own."""
    hosts = [(0,), tuple(range(1, RANKS))]
    auto = mock.patch.object(options, "AUTO", ("hierarchical", "mpi"))
    on_hosts = mock.patch.object(hierarchical, "find_hosts", lambda *_: hosts)
    variables = (settings.ALGORITHM, settings.LEADERS, settings.SEGMENT, "HBMCOMM_EAGER_BYTES")
    for variable in variables if RANKS > 2 else ():
        nonsense = on(1, mock.patch.dict(os.environ, {variable: "nonsense"}))
        words = f"rank 1: {variable}=nonsense"
        with auto, on_hosts, nonsense, refused(HbmcommError, words):
            Communicator(WORLD, "regular")


@promise
def no_memory_for_the_core() -> None:
    for rank in range(RANKS):
        all_fail_alike(on(rank, mock.patch.object(native, "lib", Poor())), "no memory")


@promise
def a_file_of_the_system_that_cannot_be_read() -> None:
    for rank in range(RANKS):
        problem = PermissionError(13, "denied")
        all_fail_alike(
            on(rank, mock.patch.object(opening, "setting", side_effect=problem)), "denied"
        )


@promise
def staging_buffers_without_memory() -> None:
    """In the middle of a call: an error on all ranks, there or at their next call."""
    for rank in range(RANKS - 1):  # the last one stages nothing in a scan
        comm = parent.Dup()
        x, y = np.ones(1 << 19), np.zeros(1 << 19)
        full = mock.patch("hbmcomm.memory.pool.Pool.fill", side_effect=MemoryError)
        with refused(HbmcommError, f"rank {rank} has no memory"), on(rank, full):
            comm.Scan(x, y)
            comm.Barrier()
        comm.Free()
        assert works(parent)


@promise
def a_root_with_longer_blocks_than_others_is_an_error_on_all() -> None:
    """MPI does the root's call, so all ranks must meet before it: else the root waits in MPI."""
    for name in ("Gather", "Scatter"):
        longer, own = np.zeros((RANKS, 4)), np.zeros(3)
        with Communicator(WORLD, "regular", "direct") as comm:
            try:
                if name == "Gather":
                    comm.Gather(own, longer if RANK == 0 else None)
                else:
                    comm.Scatter(longer[:, :3].copy(), longer[0] if RANK == 0 else own)
                comm.Barrier()  # a rank that only sends may not wait for the root
            except CallMismatch as error:
                assert f"rank 0 called {name} (served by MPI)" in str(error), error
            else:
                raise AssertionError(f"{name}: no error")


if __name__ == "__main__":
    keep()
