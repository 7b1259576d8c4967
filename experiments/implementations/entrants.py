"""Which calls a cell is timed with, the buffers they work over, and the barrier before them.

All use the same buffers but another build of the library: an arena belongs to one build.
"""

import importlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.implementations import one_ccl
from experiments.implementations.contender import (
    Contender,
    ContenderMissing,
    in_place,
    nonblocking,
    of_transport,
    persistent,
    pickled,
    plain,
)
from experiments.implementations.second_copy import load
from experiments.implementations.torch_groups import TorchGroups
from experiments.measure.buffers import Pool, Unavailable
from experiments.measure.operations import Array
from experiments.measure.timing import Call
from experiments.model.contender_names import (
    AGAIN,
    BROKEN,
    CALLS,
    DIRECT,
    IN_PLACE,
    MPI_ITSELF,
    NO_TRANSPORT,
    NONBLOCKING,
    OBJECTS,
    ONECCL,
    OTHER_AGAIN,
    OTHER_BUILD,
    OTHER_PACKAGE,
    PERSISTENT,
    PICKLE,
    change,
)
from experiments.model.launch import NUMPY, Cell, Launch
from experiments.model.lower_bound import COPY
from experiments.model.mpi_settings import WARMUP, warmup
from experiments.model.workloads import WORKLOADS
from experiments.processes import executables

ALIAS = "hbmcomm_other_build"
ALIGNMENT = 2 * 2**20  # bytes: a huge page, within which arrays of two arenas begin alike

Entrant = tuple[Contender, Pool]


class Entrants:
    """What the cells of a launch are timed with; made, used and closed by all ranks together."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        launch: Launch,
        folder: Path,
        cpus: set[int],
    ) -> None:
        """Make the contenders that are no transport of a pool; their threads may run on `cpus`."""
        self._comm, self._launch = comm, launch
        self._starter: Any = _starting_communicator(comm, folder) if launch.spares_peers else None
        self._build: tuple[Any, Pool] | None = None
        self._changed: dict[tuple[str, str], MPI.Intracomm] = {}  # by contender and kind
        self._groups = TorchGroups(comm, folder, cpus)
        self._only: dict[str, Contender] = {}  # have no other forms
        self._absent: dict[str, str] = {}
        asked = {cell.transport for cell in launch.cells}
        if PICKLE in asked and launch.spares_peers:  # else it is a transport of the pool
            self._only[PICKLE] = pickled(comm.Dup())
        if OBJECTS in asked:
            self._only[OBJECTS] = pickled(of_transport(comm, DIRECT))
        makers = self._groups.makers() | {ONECCL: partial(one_ccl.make, comm, launch.mpi)}
        for cell in launch.cells:
            if (workload := WORKLOADS.get(cell.operation)) and workload.program:
                name = cell.transport
                makers[name] = partial(_system, workload.program, name, comm, folder)
        for name, make in makers.items():
            if name in asked:
                try:
                    self._only[name] = make()
                except ContenderMissing as reason:
                    self._absent[name] = f"{name} is left out: {reason}"

    def of(self, cell: Cell, pool: Pool) -> Entrant:
        """What a cell is timed with.

        Raises:
            Unavailable: these ranks cannot have its transport.
        """
        name = cell.transport
        if name == NO_TRANSPORT:
            return self._bound(cell.operation), pool
        if lacking := self._absent.get(name) or pool.lacking.get(name):
            raise Unavailable(lacking)
        if name in self._only:
            only = self._only[name]
            return in_place(only) if cell.form == IN_PLACE else only, pool
        if name in (OTHER_BUILD, OTHER_AGAIN):
            self._build = self._build or _other_build(self._comm, pool, cell.buffers == NUMPY)
            theirs, memory = self._build
        elif threshold := change(name):
            theirs, memory = self._with_threshold(name, *threshold, pool.kind), pool
        else:
            theirs, memory = pool.communicators[DIRECT if name == AGAIN else name], pool
        if cell.form == PERSISTENT:
            broken = BROKEN.get(self._launch.mpi, ()) if name == MPI_ITSELF else ()
            return persistent(theirs, broken), memory
        if cell.form == IN_PLACE:
            return in_place(plain(theirs)), memory
        return (nonblocking if cell.form == NONBLOCKING else plain)(theirs), memory

    def _with_threshold(self, name: str, variable: str, value: str, kind: str) -> MPI.Intracomm:
        """A communicator reads its thresholds from the environment when it is made."""
        if (name, kind) not in self._changed:
            with executables.variable(variable, value):
                made = hbmcomm.Communicator(self._comm, kind=kind, transport=DIRECT)
            self._changed[name, kind] = made
        return self._changed[name, kind]

    def _bound(self, operation: str) -> Contender:
        """A plain copy, or the computation of a workload."""
        if operation == COPY:
            return plain(self._comm)
        try:
            return self._groups.computation()
        except ContenderMissing as reason:
            raise Unavailable(f"{operation} is left out: {reason}") from None

    def lacks(self, cell: Cell) -> str:
        """Why a contender lacks an operation in this form of call."""
        mpi = self._launch.mpi
        if cell.operation in BROKEN.get(mpi, ()):
            calls = ", ".join(CALLS[name] for name in BROKEN[mpi])
            return f"{mpi} leaves wrong data in persistent {calls}"
        return f"{mpi} has no {cell.form} calls"

    def warmup(self, cell: Cell) -> int:
        """Warm-up operations of a cell: more for an MPI that tunes itself during them."""
        if cell.transport != MPI_ITSELF:
            return WARMUP
        return warmup(self._launch.mpi, self._launch.setting)

    def gate(self, pool: Pool, tight: bool) -> tuple[Call | None, str]:
        """The barrier that starts all ranks at once, with the isolated cadence; its stored name.

        MPI's ends what the MPI still has to do. Over a network its ranks leave it microseconds
        apart, and the first one's wait would count as the operation's: where ranks share memory, a
        barrier follows that they leave together.

        Args:
            tight: whether ranks start together from that barrier, as every arm can.
        """
        if self._launch.measurement.cadence != "isolated":
            return None, "none"
        if self._starter is not None:
            name = f"{DIRECT}'s, of a copy of the library that serves nothing else"
            return self._starter.Barrier, name
        ends = self._comm.Barrier
        if not tight:
            return ends, "the MPI's"
        starts = pool.communicators[DIRECT].Barrier

        def both() -> None:
            ends()
            starts()

        return both, f"the MPI's, then {DIRECT}'s"

    def is_tight(self, pool: Pool) -> bool:
        """Whether these ranks have a barrier in shared memory."""
        return self._starter is not None or DIRECT in pool.communicators

    def close(self) -> None:
        """Close what was made here."""
        self._groups.leave()
        for comm in self._changed.values():
            comm.Free()
        if self._build is not None:
            self._build[0].Free()
        if self._starter is not None:
            self._starter.Free()


def _system(program: str, name: str, comm: MPI.Intracomm, folder: Path) -> Contender:
    """A contender of implementations/`program`, which may import what other launches lack."""
    module = importlib.import_module(f"experiments.implementations.{program}")
    made: Contender = module.make(name, comm, folder)
    return made


def _starting_communicator(comm: MPI.Intracomm, folder: Path) -> Any:
    """A communicator whose barrier starts the ranks at the same moment; no contender uses it.

    The barrier is direct's under every MPI alike: MPICH's own lets two ranks go 1 µs apart, Open
    MPI's 0.1, and the slowest rank's time would hold that, whatever is timed. A copy of the library
    that serves nothing else has it: after its own barrier, with its code in the caches, direct took
    3 % less for 8 bytes than a second build of the same code.
    """
    package = Path(hbmcomm.__file__).parent
    copy = folder / "starter" / package.name
    if comm.rank == 0:
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    comm.Barrier()
    return load(copy, "hbmcomm_starter").Communicator(comm, kind="regular", transport=DIRECT)


def _other_build(comm: MPI.Intracomm, pool: Pool, ordinary: bool) -> tuple[Any, Pool]:
    """A communicator of the other build, and buffers: of its own arena, or the common ones."""
    library: Any = load(Path(os.environ[OTHER_PACKAGE]), ALIAS)
    theirs = library.Communicator(comm, kind=pool.kind, transport=DIRECT)
    if ordinary:
        return theirs, pool
    send, recv = (_alike(theirs.empty, array) for array in (pool.send, pool.recv))
    return theirs, replace(pool, send=send, recv=recv)


def _alike(empty: Callable[[int, str], Array], array: Array) -> Array:
    """A touched array of the same length that begins at the same place within a huge page."""
    spare = ALIGNMENT // array.itemsize
    room = empty(array.size + spare, array.dtype.name)
    begin = (array.ctypes.data - room.ctypes.data) % ALIGNMENT // array.itemsize
    copy = room[begin : begin + array.size]
    np.copyto(copy, array)
    return copy
