"""The MPI program of a bench: reads one launch, lets the contenders take turns, writes what it saw.

Started as `mpiexec -n N python -m experiments.bench.program FOLDER [OTHER_PACKAGE]`. FOLDER holds
launch.json; rank 0 writes progress, turn, result.json and samples.npz beside it.
"""

import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
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
from experiments.bench.gloo import leave
from experiments.bench.interleave import Entrant, interleave
from experiments.bench.names import OTHER_BUILD, OURS, PLAIN
from experiments.bench.parties import TRANSPORT, Key, Party, parties
from experiments.bench.schedule import Launch
from experiments.bench.starter import make_starter
from experiments.bench.turn import FILE, Turn, Turns
from experiments.bound import BARRIER, COPY
from experiments.measure import datapath, machine, operations, process, timing, versions
from experiments.measure.buffers import (
    Pool,
    Unavailable,
    described,
    make_pool,
    require_memory,
)
from experiments.measure.progress import Progress
from experiments.schedule import FORMAT


def main(folder: Path, other: Path | None = None) -> None:
    """One rank's whole life.

    Args:
        other: the package of another build, where the launch has one to be compared with.
    """
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
    hashes = versions.hashes()  # while there is one core
    found, absent, made = parties(comm, launch, pool, folder, allowed, other)
    at_root = comm.rank == 0
    progress = Progress(folder / "progress" if at_root else None)
    starter = make_starter(comm, folder)
    turns = Turns(folder / FILE if at_root else None, starter.Barrier)
    cells, samples = _measure(comm, starter, launch, pool, found, progress, turns)
    turns.end()
    leave()
    every = comm.gather((paths, {"rank": comm.rank, "cpu": cpu, **described(pool)}))
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
            "absent": absent,
            "began": began,
            "seconds": time.time() - began,
        }
        np.savez(folder / "samples.npz", **samples)  # type: ignore[arg-type]
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    for each in (starter, *made, *pool.communicators.values()):
        each.Free()


def _pool(comm: MPI.Intracomm, launch: Launch, cpu: int) -> Pool:
    """The buffers of all cells and contenders: in the arena, or ordinary NumPy arrays."""
    itemsize = np.dtype(launch.dtype).itemsize
    needs = [
        (footprint.sizes(operation, comm.rank, comm.size), size // itemsize)
        for operation, size in _with_copies(launch.cells)
    ]
    lengths = (
        max(need.send * elements for need, elements in needs),
        max(need.recv * elements for need, elements in needs),
    )
    pools = 2 if OTHER_BUILD in launch.peers and not launch.private else 1
    require_memory(comm, pools * sum(lengths) * itemsize, launch.name)
    kind = "regular" if launch.private else hbmcomm.default_kind()
    allocate = np.empty if launch.private else None
    try:
        return make_pool(comm, kind, "local", [TRANSPORT], launch.dtype, lengths, cpu, allocate)
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None


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
    found: Mapping[Key, Party],
    progress: Progress,
    turns: Turns,
) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float64]]]:
    itemsize = np.dtype(launch.dtype).itemsize
    cost, rng = timing.clock_cost(), random.Random(launch.seed)
    planned = list(_with_copies(launch.cells))
    longest = max(
        footprint.sizes(operation, footprint.ROOT, comm.size).send * size
        for operation, size in planned
    )
    pattern = operations.ramp(longest // itemsize, launch.dtype)
    cells: list[dict[str, Any]] = []
    samples: dict[str, NDArray[np.float64]] = {}
    copier = {(COPY, PLAIN): Party(plain(comm), pool)}
    for number, (operation, size) in enumerate(planned):
        progress.cells(number, len(planned))
        entrants: dict[str, Entrant] = {}
        ready: dict[str, tuple[Key, Ready]] = {}
        among = copier if operation == COPY else found
        for index, (key, party) in enumerate(among.items()):
            turn = Turn(operation, size, *key)
            if any(each.covers(*key, operation, size) for each in launch.without):
                continue
            turns.begin(turn)
            buffers, *_ = party.pool.slots(operation, size // itemsize, comm.rank, comm.size)
            made = party.contender(operation, *buffers)
            if made is not None:
                ready[f"{index:02d}"] = key, made
                entrants[f"{index:02d}"] = entrant(
                    *(comm, operation, buffers, pattern, made, index),
                    begin=partial(turns.begin, turn),
                    ours=key[0] in OURS,
                )
        times, wrong = interleave(
            entrants, *(starter, launch.measurement, cost, rng, progress.tick)
        )
        for name, ((contender, form), made) in ready.items():
            turns.begin(Turn(operation, size, contender, form))
            made.close()
            cell: dict[str, Any] = {"operation": operation, "bytes": size}
            cell |= {"contender": contender, "form": form}
            if name in wrong:
                cells.append(cell | {"wrong": wrong[name]})
                continue
            taken, label = times[name], f"c{number:05d}.{name}"
            samples[label] = taken.seconds
            cell |= {"samples": label, "warmup": taken.warmup, "group": taken.group}
            cells.append(cell)
    return cells, samples


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: mpiexec -n N python -m experiments.bench.program FOLDER [OTHER_PACKAGE]")
    process.run(partial(main, other=Path(sys.argv[2]) if sys.argv[2:] else None), Path(sys.argv[1]))
