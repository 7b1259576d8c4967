"""The MPI program of bench --tune: reads one launch, lets values take turns, writes what it saw.

Started as `mpiexec -n N python -m experiments.bench.tune.program FOLDER`. FOLDER holds launch.json;
rank 0 writes progress, turn, result.json and samples.npz beside it.

The thresholds of a communicator are read from the environment when it is made, so that one launch
has a communicator for each value, over the same arrays.
"""

import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import hbmcomm
from experiments import footprint
from experiments.bench.checked import entrant
from experiments.bench.contenders import Ready, plain
from experiments.bench.interleave import Entrant, interleave
from experiments.bench.names import PLAIN
from experiments.bench.parties import TRANSPORT
from experiments.bench.starter import make_starter
from experiments.bench.tune.schedule import Launch
from experiments.bench.tune.trials import NOW, Cell, Trial
from experiments.bench.turn import FILE, Turn, Turns
from experiments.measure import datapath, machine, operations, process, timing, versions
from experiments.measure.buffers import Pool, Unavailable, described, make_pool, require_memory
from experiments.measure.progress import Progress
from experiments.schedule import FORMAT

Communicators = Mapping[tuple[str, str], MPI.Intracomm]
"""By variable and contender."""


def main(folder: Path) -> None:
    """One rank's whole life."""
    process.die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    launch = Launch.from_dict(json.loads((folder / "launch.json").read_text(encoding="utf-8")))
    if launch.ranks != comm.size:
        raise SystemExit(f"launch {launch.name} asks for {launch.ranks} ranks; found {comm.size}")
    began = time.time()
    paths = datapath.probe(comm)  # before pinning, to see what the environment allows
    cpu = process.pin(comm.rank, "packed")
    pools = {private: _pool(comm, launch, cpu, private) for private in (False, True)}
    hashes = versions.hashes()  # while there is one core
    made = _communicators(comm, launch, pools)
    at_root = comm.rank == 0
    progress = Progress(folder / "progress" if at_root else None)
    starter = make_starter(comm, folder)
    turns = Turns(folder / FILE if at_root else None, starter.Barrier)
    cells, samples = _measure(comm, starter, launch, pools, made, progress, turns)
    turns.end()
    every = comm.gather((paths, {"rank": comm.rank, "cpu": cpu, **described(pools[False])}))
    if every is not None:
        result = {
            "format": FORMAT,
            "launch": launch.to_dict(),
            "environment": {
                "versions": versions.versions(),
                "hashes": hashes,
                "machine": machine.machine(),
                "datapath": every[0][0],
            },
            "ranks": [rank for _, rank in every],
            "cells": cells,
            "began": began,
            "seconds": time.time() - began,
        }
        np.savez(folder / "samples.npz", **samples)  # type: ignore[arg-type]
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
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
    kind = "regular" if private else hbmcomm.default_kind()
    allocate = np.empty if private else None
    try:
        return make_pool(comm, kind, "local", [TRANSPORT], launch.dtype, lengths, cpu, allocate)
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None


def _communicators(
    comm: MPI.Intracomm, launch: Launch, pools: Mapping[bool, Pool]
) -> dict[tuple[str, str], MPI.Intracomm]:
    """One for each value that is tried; those with the values in force are the pools'."""
    found: dict[tuple[str, str], MPI.Intracomm] = {}
    for trial in launch.trials:
        for value in trial.values:
            with _variable(trial.variable, str(value)):
                found[trial.variable, str(value)] = hbmcomm.Communicator(
                    comm, kind=pools[trial.private].kind, transport=TRANSPORT
                )
    return found


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Inside, a variable of the environment has another value."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _measure(
    comm: MPI.Intracomm,
    starter: MPI.Intracomm,
    launch: Launch,
    pools: Mapping[bool, Pool],
    made: Communicators,
    progress: Progress,
    turns: Turns,
) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float64]]]:
    cost, rng = timing.clock_cost(), random.Random(launch.seed)
    longest = max(pool.send.size for pool in pools.values())
    pattern = operations.ramp(comm.allreduce(longest, MPI.MAX), launch.dtype)
    cells: list[dict[str, Any]] = []
    samples: dict[str, NDArray[np.float64]] = {}
    planned = launch.cells()
    for number, (trial, cell) in enumerate(planned):
        progress.cells(number, len(planned))
        pool = pools[trial.private]
        among = {NOW: pool.communicators[TRANSPORT]}
        among |= {str(value): made[trial.variable, str(value)] for value in trial.values}
        ready, entrants = _entrants(comm, cell, pool, among, pattern, turns)
        times, _ = interleave(entrants, *(starter, launch.measurement, cost, rng, progress.tick))
        for name, taken in times.items():
            ready[name].close()
            label = f"c{number:05d}.{name}"
            samples[label] = taken.seconds
            cells.append(_described(trial, cell, name, label, taken))
    return cells, samples


def _entrants(
    comm: MPI.Intracomm,
    cell: Cell,
    pool: Pool,
    among: Mapping[str, MPI.Intracomm],
    pattern: operations.Array,
    turns: Turns,
) -> tuple[dict[str, Ready], dict[str, Entrant]]:
    """All contenders of a cell, by name, over the same buffers."""
    elements = cell.bytes // pool.send.itemsize
    buffers, *_ = pool.slots(cell.operation, elements, comm.rank, comm.size)
    ready: dict[str, Ready] = {}
    entrants: dict[str, Entrant] = {}
    for index, (name, communicator) in enumerate(among.items()):
        made = plain(communicator)(cell.operation, *buffers)
        assert made is not None, f"plain calls do {cell.operation}"
        begin = partial(turns.begin, Turn(cell.operation, cell.bytes, name, PLAIN))
        ready[name] = made
        entrants[name] = entrant(comm, cell.operation, buffers, pattern, made, index, begin)
    return ready, entrants


def _described(
    trial: Trial, cell: Cell, name: str, label: str, taken: timing.Samples
) -> dict[str, Any]:
    return {
        "variable": trial.variable,
        "operation": cell.operation,
        "bytes": cell.bytes,
        "at": cell.at,
        "contender": name,
        "samples": label,
        "warmup": taken.warmup,
        "group": taken.group,
        "turn": taken.turn,
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: mpiexec -n N python -m experiments.bench.tune.program FOLDER")
    process.run(main, Path(sys.argv[1]))
