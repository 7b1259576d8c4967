"""The MPI program of bench --tune: reads one launch, lets values take turns, writes what it saw.

Started as `mpiexec -n N python -m experiments.bench.tune.program FOLDER`. FOLDER holds launch.json;
rank 0 writes progress, result.json and samples.npz beside it.

The thresholds of a communicator are read from the environment when it is made, so that one launch
has a communicator for each value, over the same arrays.
"""

import random
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import hbmcomm
from experiments.bench.tune.schedule import Launch
from experiments.bench.tune.trials import NOW
from experiments.model.contender_names import DIRECT
from experiments.model.experiment import ARENA, NUMPY
from experiments.processes.background import die_with_parent
from experiments.processes.environ import variable
from experiments.programs import rank_process
from experiments.programs.contenders import trial as measured
from experiments.programs.contenders.contender import plain
from experiments.programs.contenders.starter import make_starter
from experiments.programs.launch_folder import read_json, write_result
from experiments.programs.machine import datapath, facts, versions
from experiments.programs.measure import operations, timing
from experiments.programs.measure.alone import conduct_alone
from experiments.programs.measure.buffers import (
    Pool,
    Unavailable,
    described,
    make_pool,
    require_memory,
)
from experiments.programs.measure.progress import Progress
from experiments.schedule import footprint
from experiments.schedule.turns import Action, Answer, Order, numbers

Communicators = Mapping[tuple[str, str], MPI.Intracomm]
"""By variable and contender."""


def main(folder: Path) -> None:
    """One rank's whole life."""
    die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    launch = Launch.from_dict(read_json(folder / "launch.json"))
    if launch.ranks != comm.size:
        raise SystemExit(f"launch {launch.name} asks for {launch.ranks} ranks; found {comm.size}")
    began = time.time()
    paths = datapath.probe(comm)  # before pinning, to see what the environment allows
    cpu = rank_process.pin(comm.rank, "packed")
    pools = {private: _pool(comm, launch, cpu, private) for private in (False, True)}
    hashes = versions.hashes()  # while there is one core
    made = _communicators(comm, launch, pools)
    at_root = comm.rank == 0
    progress = Progress(folder / "progress" if at_root else None)
    starter = make_starter(comm, folder)
    cells = Cells(comm, launch, pools, made, progress, starter.Barrier)
    contests = numbers([trial.contenders for trial, _ in launch.cells()])
    conduct_alone(comm, cells.carry_out, contests, launch.measurement, random.Random(launch.seed))
    every = comm.gather((paths, {"rank": comm.rank, "cpu": cpu, **described(pools[False])}))
    if every is not None:
        write_result(
            folder,
            asdict(launch),
            began,
            cells.samples,
            environment={
                "versions": versions.versions(),
                "hashes": hashes,
                "machine": facts.machine(),
                "datapath": every[0][0],
            },
            ranks=[rank for _, rank in every],
            cells=[cells.found[number] for number in sorted(cells.found)],
        )
    for each in (starter, *made.values()):
        each.Free()
    for pool in pools.values():
        for communicator in pool.communicators.values():
            communicator.Free()


def _pool(comm: MPI.Intracomm, launch: Launch, cpu: int, private: bool) -> Pool:
    """The buffers of all cells of one sort: in the arena, or ordinary NumPy arrays."""
    itemsize = np.dtype(launch.dtype).itemsize
    needs = [
        (footprint.sizes(cell.operation, comm.rank, comm.size), cell.bytes // itemsize)
        for trial, cell in launch.cells()
        if trial.private == private
    ]
    lengths = (
        max((need.send * elements for need, elements in needs), default=1),
        max((need.recv * elements for need, elements in needs), default=1),
    )
    require_memory(comm, sum(lengths) * itemsize, launch.name)
    kind, buffers = ("regular", NUMPY) if private else (hbmcomm.default_kind(), ARENA)
    try:
        return make_pool(comm, (kind, "local", buffers), [DIRECT], launch.dtype, lengths, cpu)
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None


def _communicators(
    comm: MPI.Intracomm, launch: Launch, pools: Mapping[bool, Pool]
) -> dict[tuple[str, str], MPI.Intracomm]:
    """One for each value that is tried; those with the values in force are the pools'."""
    found: dict[tuple[str, str], MPI.Intracomm] = {}
    for trial in launch.trials:
        for value in trial.values:
            with variable(trial.variable, str(value)):
                found[trial.variable, str(value)] = hbmcomm.Communicator(
                    comm, kind=pools[trial.private].kind, transport=DIRECT
                )
    return found


class Cells:
    """Every contender of every cell, begun, timed in turns and ended; a collective, each time.

    Attributes:
        found: by its number, what is stored of each that was ended.
        samples: seconds by the key that `found` names; complete on rank 0 only.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        launch: Launch,
        pools: Mapping[bool, Pool],
        made: Communicators,
        progress: Progress,
        start: timing.Call,
    ) -> None:
        self._comm, self._pools, self._made, self._progress = comm, pools, made, progress
        self._gate = start if launch.measurement.cadence == "isolated" else None
        self._plan = [(*each, name) for each in launch.cells() for name in each[0].contenders]
        self._cost = timing.clock_cost()
        longest = comm.allreduce(max(pool.send.size for pool in pools.values()), MPI.MAX)
        self._pattern = operations.ramp(longest, launch.dtype)
        self._begun: dict[int, tuple[measured.Trial, timing.Timer]] = {}
        self.found: dict[int, dict[str, Any]] = {}
        self.samples: dict[str, NDArray[np.float64]] = {}

    def carry_out(self, order: Order) -> Answer:
        """Do what rank 0 wants of all ranks now."""
        match order.action:
            case Action.BEGIN:
                return self._begin(order.cell)
            case Action.TURN:
                timer = self._begun[order.cell][1]
                timer.turn(order.count, order.group)
                return Answer(narrow=timer.is_narrow())
            case Action.END:
                self._end(order.cell)
        return Answer()

    def _begin(self, number: int) -> Answer:
        trial, cell, name = self._plan[number]
        self._progress.cells(number, len(self._plan))
        pool = self._pools[trial.private]
        usual = pool.communicators[DIRECT]
        theirs = usual if name == NOW else self._made[trial.variable, name]
        elements = cell.bytes // pool.send.itemsize
        slots = pool.slots(cell.operation, elements, self._comm.rank, self._comm.size)[:1]
        timed = measured.Trial(cell.operation, self._comm, slots, self._pattern, plain(theirs))
        timed.check()
        timer = timing.Timer(timed.prepare, self._comm, self._cost, self._progress.tick, self._gate)
        self._begun[number] = timed, timer
        return Answer(seconds=timer.seconds, group=timer.group)

    def _end(self, number: int) -> None:
        timed, timer = self._begun.pop(number)
        timed.check()
        timed.close()
        trial, cell, name = self._plan[number]
        key, taken = f"c{number:05d}", timer.samples()
        self.samples[key] = taken.seconds
        self.found[number] = (
            {"variable": trial.variable, "contender": name, "samples": key}
            | {"operation": cell.operation, "bytes": cell.bytes, "at": cell.at}
            | {"warmup": taken.warmup, "group": taken.group, "turn": taken.turn}
        )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: mpiexec -n N python -m experiments.bench.tune.program FOLDER")
    rank_process.run(main, Path(sys.argv[1]))
