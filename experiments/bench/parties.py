"""The contenders of a launch, by name and form, and the buffers that each works over.

All use the same buffers but another build of the library: an arena belongs to one build.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from experiments.bench.contenders import Contender, nonblocking, persistent, pickled, plain
from experiments.bench.gloo import GlooMissing, gloo
from experiments.bench.names import (
    AGAIN,
    BROKEN,
    DIRECT,
    GLOO,
    MPI_ITSELF,
    NONBLOCKING,
    OTHER_AGAIN,
    OTHER_BUILD,
    PERSISTENT,
    PICKLE,
    PLAIN,
)
from experiments.bench.schedule import Launch
from experiments.bench.second_copy import load
from experiments.measure.buffers import Pool
from experiments.measure.operations import Array

TRANSPORT = "direct"
ALIAS = "hbmcomm_other_build"
ALIGNMENT = 2 * 2**20  # bytes: a huge page, within which arrays of two arenas begin alike

Key = tuple[str, str]  # contender and form


@dataclass(frozen=True)
class Party:
    """A contender in one form of its calls, and the memory that its buffers are cut from."""

    contender: Contender
    pool: Pool


def parties(
    comm: MPI.Intracomm,
    launch: Launch,
    pool: Pool,
    folder: Path,
    cpus: set[int],
    other: Path | None,
) -> tuple[dict[Key, Party], dict[str, str], list[Any]]:
    """Make all contenders of a launch; a collective.

    Args:
        folder: of the launch.
        cpus: where threads that a contender starts may run.
        other: the package of the other build, where the launch has one.

    Returns:
        The parties, the reason why others are absent, and communicators to free at the end.
    """
    found: dict[Key, Party] = {}
    absent: dict[str, str] = {}
    made: list[Any] = []

    def add(name: str, theirs: MPI.Intracomm, memory: Pool) -> None:
        broken = BROKEN.get(launch.flavour, ()) if name == MPI_ITSELF else ()
        ways: dict[str, Callable[[], Contender]] = {
            PLAIN: lambda: plain(theirs),
            PERSISTENT: lambda: persistent(theirs, broken),
            NONBLOCKING: lambda: nonblocking(theirs),
        }
        for form in launch.forms:
            found[name, form] = Party(ways[form](), memory)

    ours = pool.communicators[TRANSPORT]
    add(DIRECT, ours, pool)
    add(AGAIN, ours, pool)
    if OTHER_BUILD in launch.peers:
        if other is None:
            raise SystemExit(f"launch {launch.name} needs the folder of the other build's package")
        theirs, memory = _other_build(comm, pool, other, launch.private)
        add(OTHER_BUILD, theirs, memory)
        add(OTHER_AGAIN, theirs, memory)
        made.append(theirs)
    if MPI_ITSELF in launch.peers:
        add(MPI_ITSELF, comm.Dup(), pool)
    if PLAIN in launch.forms:
        if PICKLE in launch.peers:
            found[PICKLE, PLAIN] = Party(pickled(comm.Dup()), pool)
        if GLOO in launch.peers:
            try:
                found[GLOO, PLAIN] = Party(gloo(comm, folder, cpus), pool)
            except GlooMissing as reason:
                absent[GLOO] = str(reason)
    return found, absent, made


def _other_build(
    comm: MPI.Intracomm, pool: Pool, package: Path, private: bool
) -> tuple[MPI.Intracomm, Pool]:
    """A communicator of the other build, and buffers: of its own arena, or the common ones."""
    library: Any = load(package, ALIAS)
    theirs = library.Communicator(comm, kind=pool.kind, transport=TRANSPORT)
    if private:
        return theirs, pool
    send, recv = (_alike(theirs.empty, array) for array in (pool.send, pool.recv))
    return theirs, replace(pool, send=send, recv=recv)


def _alike(empty: Callable[[int, str], Array], array: Array) -> Array:
    """A touched array of the same length that begins at the same place within a huge page."""
    spare = ALIGNMENT // array.itemsize
    room = empty(array.size + spare, array.dtype.name)
    begin = (_address(array) - _address(room)) % ALIGNMENT // array.itemsize
    found = room[begin : begin + array.size]
    np.copyto(found, array)
    return found


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
