"""The MPI program of a bench: reads one launch, lets the contenders take turns, writes what it saw.

Started as `mpiexec -n N python -m experiments.bench.program FOLDER`. FOLDER holds launch.json;
progress, result.json and samples.npz are written beside it by rank 0, as the harness does.

What sets ranks off at the same moment is a barrier of direct's, on a communicator that does nothing
else, under every MPI alike: MPICH's own lets two ranks go 1 µs apart, Open MPI's 0.1, and the
slowest rank's time would hold that, whoever is timed.
"""

import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import hbmcomm
from experiments.bench.contenders import Contender, Ready, persistent, pickled, plain
from experiments.bench.gloo import GlooMissing, gloo, leave
from experiments.bench.interleave import Entrant, interleave
from experiments.bench.names import (
    AGAIN,
    BROKEN,
    DIRECT,
    GLOO,
    MPI_ITSELF,
    PERSISTENT,
    PICKLE,
    PLAIN,
)
from experiments.bench.schedule import Launch
from experiments.bound import BARRIER, COPY
from experiments.measure import datapath, machine, operations, process, timing, versions
from experiments.measure.buffers import Pool, Unavailable, make_pool, require_memory
from experiments.measure.progress import Progress
from experiments.measure.trial import Trial
from experiments.schedule import FORMAT

TRANSPORT = "direct"
STEP = 13  # between the iteration numbers of contenders: none finds another's result and passes
UNSET = 127  # in a buffer before the first checked call

OURS = (DIRECT, AGAIN, COPY)

Key = tuple[str, str]  # contender and form


def main(folder: Path) -> None:
    """One rank's whole life."""
    process.die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    launch = Launch.from_dict(json.loads((folder / "launch.json").read_text(encoding="utf-8")))
    if launch.ranks != comm.size:
        raise SystemExit(f"launch {launch.name} asks for {launch.ranks} ranks; found {comm.size}")
    began = time.time()
    paths = datapath.probe(comm)  # before pinning, to see what the environment allows
    allowed = os.sched_getaffinity(0)
    cpu = process.pin(comm.rank, "packed")
    pool = _pool(comm, launch, cpu)
    ours = pool.communicators[TRANSPORT]
    contenders, absent = _contenders(comm, launch, ours, folder, allowed)
    progress = Progress(folder / "progress" if comm.rank == 0 else None)
    starter = hbmcomm.Communicator(comm, kind="regular", transport=TRANSPORT)
    cells, samples = _measure(comm, starter, launch, pool, contenders, progress)
    leave()
    every = comm.gather((paths, {"rank": comm.rank, "cpu": cpu, **_describe(pool)}))
    if comm.rank == 0 and every is not None:
        result = {
            "format": FORMAT,
            "launch": launch.to_dict(),
            "environment": {
                "versions": versions.versions(),
                "hashes": versions.hashes(),
                "machine": machine.machine(),
                "datapath": every[0][0],
            },
            "ranks": [rank for _, rank in every],
            "cells": cells,
            "absent": absent,
            "began": began,
            "seconds": time.time() - began,
        }
        np.savez(folder / "samples.npz", **samples)  # type: ignore[arg-type]
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    for each in (starter, *pool.communicators.values()):
        each.Free()


def _pool(comm: MPI.Intracomm, launch: Launch, cpu: int) -> Pool:
    """The buffers of all cells and contenders: in the arena, or ordinary NumPy arrays."""
    itemsize = np.dtype(launch.dtype).itemsize
    needs = [
        (operations.sizes(operation, comm.rank, comm.size), size // itemsize)
        for operation, size in _with_copies(launch.cells)
    ]
    lengths = (
        max(need.send * elements for need, elements in needs),
        max(need.recv * elements for need, elements in needs),
    )
    require_memory(comm, sum(lengths) * itemsize, launch.name)
    kind = "regular" if launch.private else hbmcomm.default_kind()
    allocate = np.empty if launch.private else None
    try:
        return make_pool(comm, kind, "local", [TRANSPORT], launch.dtype, lengths, cpu, allocate)
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None


def _contenders(
    comm: MPI.Intracomm, launch: Launch, ours: MPI.Intracomm, folder: Path, cpus: set[int]
) -> tuple[dict[Key, Contender], dict[str, str]]:
    """All who take part, and why others cannot."""
    found: dict[Key, Contender] = {
        (DIRECT, PLAIN): plain(ours),
        (AGAIN, PLAIN): plain(ours),
        (DIRECT, PERSISTENT): persistent(ours),
    }
    absent: dict[str, str] = {}
    if MPI_ITSELF in launch.peers:
        theirs = comm.Dup()
        found |= {
            (MPI_ITSELF, PLAIN): plain(theirs),
            (MPI_ITSELF, PERSISTENT): persistent(theirs, BROKEN.get(launch.flavour, ())),
        }
    if PICKLE in launch.peers:
        found[PICKLE, PLAIN] = pickled(comm.Dup())
    if GLOO in launch.peers:
        try:
            found[GLOO, PLAIN] = gloo(comm, folder, cpus)
        except GlooMissing as reason:
            absent[GLOO] = str(reason)
    return found, absent


def _with_copies(cells: tuple[tuple[str, int], ...]) -> Iterator[tuple[str, int]]:
    """The cells in their order, each size preceded by the copy that bounds it."""
    seen: set[int] = set()
    for operation, size in cells:
        if operation != BARRIER and size not in seen:
            seen.add(size)
            yield COPY, size
        yield operation, size


def _measure(
    comm: MPI.Intracomm,
    starter: MPI.Intracomm,
    launch: Launch,
    pool: Pool,
    contenders: Mapping[Key, Contender],
    progress: Progress,
) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float64]]]:
    itemsize = np.dtype(launch.dtype).itemsize
    cost, rng = timing.clock_cost(), random.Random(launch.seed)
    planned = list(_with_copies(launch.cells))
    longest = max(
        operations.sizes(operation, operations.ROOT, comm.size).send * size
        for operation, size in planned
    )
    pattern = operations.ramp(longest // itemsize, launch.dtype)
    cells: list[dict[str, Any]] = []
    samples: dict[str, NDArray[np.float64]] = {}
    copier = {(COPY, PLAIN): plain(comm)}
    for number, (operation, size) in enumerate(planned):
        progress.cells(number, len(planned))
        ((send, recv), *_) = pool.slots(operation, size // itemsize, comm.rank, comm.size)
        among = copier if operation == COPY else contenders
        ready = {key: who(operation, send, recv) for key, who in among.items()}
        entrants = {
            f"{index:02d}": (key, each)
            for index, (key, each) in enumerate(ready.items())
            if each is not None
        }
        found, wrong = interleave(
            {
                index: _entrant(comm, operation, (send, recv), pattern, key, each, int(index))
                for index, (key, each) in entrants.items()
            },
            *(starter, launch.measurement, cost, rng, progress.tick),
        )
        for index, ((contender, form), each) in entrants.items():
            each.close()
            cell: dict[str, Any] = {"operation": operation, "bytes": size}
            cell |= {"contender": contender, "form": form}
            if index in wrong:
                cells.append(cell | {"wrong": wrong[index]})
                continue
            name = f"c{number:05d}.{index}"
            samples[name] = found[index].seconds
            cell |= {"samples": name, "warmup": found[index].warmup, "group": found[index].group}
            cells.append(cell)
    return cells, samples


def _entrant(
    comm: MPI.Intracomm,
    operation: str,
    buffers: tuple[operations.Array, operations.Array],
    pattern: operations.Array,
    key: Key,
    ready: Ready,
    index: int,
) -> Entrant:
    trial = Trial(operation, comm, [buffers], pattern, lambda send, recv: ready.call)

    def prepare(iteration: int) -> timing.Call:
        if iteration == 0:
            for buffer in buffers:
                buffer.fill(UNSET)
        return trial.prepare(iteration + STEP * index)

    def check() -> None:
        ready.collect()
        trial.check()

    return Entrant(prepare, check, ours=key[0] in OURS)


def _describe(pool: Pool) -> dict[str, Any]:
    return {
        "kind": pool.kind,
        "emulated": pool.emulated,
        "nodes": list(pool.nodes),
        "source": hbmcomm.source(pool.send) or "numpy",
        "placement_method": hbmcomm.placement_method(),
        "placement": {str(node): size for node, size in sorted(pool.placement.items())},
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: mpiexec -n N python -m experiments.bench.program FOLDER")
    process.run(main, Path(sys.argv[1]))
