"""The MPI program: reads one launch, measures its cells, writes what it found.

Started as `mpiexec -n N python -m experiments.harness FOLDER` by every environment alike. FOLDER
holds launch.json; progress, result.json and samples.npz are written beside it by rank 0. It draws
nothing, schedules nothing and starts nothing.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import hbmcomm
from experiments.bound import COPY
from experiments.measure import (
    cgroup,
    datapath,
    machine,
    nodes,
    operations,
    process,
    timing,
    versions,
)
from experiments.measure.buffers import Pool, Unavailable, make_pool, require_memory
from experiments.measure.progress import Progress
from experiments.measure.told import told
from experiments.measure.trial import Trial
from experiments.schedule import FORMAT, Cell, Launch
from experiments.spec import TRANSPORTS

Samples = dict[str, NDArray[np.float64]]
TIGHT = "direct"  # the transport whose barrier ranks leave together


def main(folder: Path) -> None:
    """One rank's whole life."""
    process.die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    launch = Launch.from_dict(json.loads((folder / "launch.json").read_text(encoding="utf-8")))
    if launch.ranks != comm.size:
        raise SystemExit(f"launch {launch.name} asks for {launch.ranks} ranks; found {comm.size}")
    began = time.time()
    paths = datapath.probe(comm)  # before pinning, to see what the environment allows
    cpu = process.pin(comm.rank, launch.binding)
    pools, skipped = _pools(comm, launch, cpu)
    progress = Progress(folder / "progress" if comm.rank == 0 else None)
    cells, samples = _measure(comm, launch, pools, skipped, progress)
    ranks = comm.gather(
        {"rank": comm.rank, "cpu": cpu, "pools": [_describe(key, pools[key]) for key in pools]}
    )
    environment = surroundings(comm, paths)
    if comm.rank == 0:
        tight = any(TIGHT in pool.communicators for pool in pools.values())
        barrier = f"the MPI's, then {TIGHT}'s" if tight else "the MPI's"
        result = {
            "format": FORMAT,
            "launch": launch.to_dict(),
            "environment": environment | {"measurement": {"barrier": barrier}},
            "ranks": ranks,
            "cells": cells,
            "began": began,
            "seconds": time.time() - began,
        }
        np.savez(folder / "samples.npz", **samples)  # type: ignore[arg-type]
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


def surroundings(comm: MPI.Intracomm, paths: dict[str, object]) -> dict[str, Any]:
    """What a launch ran on and with, as its result tells it; empty on ranks but 0; a collective.

    For the end of a launch: it sends messages of its own.

    Args:
        paths: datapath.probe() of this rank.
    """
    said = told(comm)
    every = comm.gather(paths)
    if every is None:
        return {}
    return {
        "versions": versions.versions(),
        "hashes": versions.hashes(),
        "machine": machine.machine() | cgroup.limits(),
        "topology": nodes.nodes(),
        "datapath": every[0]
        | {tried: _summary(every, tried) for tried in datapath.TRIED}
        | {"told": said},
    }


def _pools(
    comm: MPI.Intracomm, launch: Launch, cpu: int
) -> tuple[dict[tuple[str, str], Pool], dict[tuple[str, str], str]]:
    """The buffers of every kind and locality asked for, and why some cannot be had."""
    pools: dict[tuple[str, str], Pool] = {}
    skipped: dict[tuple[str, str], str] = {}
    lengths = _lengths(comm.rank, launch)
    _check_memory(comm, launch, lengths)
    for kind, locality in dict.fromkeys((cell.kind, cell.locality) for cell in launch.cells):
        asked = {cell.transport for cell in launch.cells}
        transports = [name for name in TRANSPORTS if name in asked]
        try:
            pools[kind, locality] = make_pool(
                comm, kind, locality, transports, launch.dtype, lengths, cpu
            )
        except Unavailable as reason:
            skipped[kind, locality] = str(reason)
    return pools, skipped


def _lengths(rank: int, launch: Launch) -> tuple[int, int]:
    """Elements of send and receive memory that the largest cell needs, or that fool the cache."""
    itemsize = np.dtype(launch.dtype).itemsize
    needs = [
        (operations.sizes(cell.operation, rank, launch.ranks), cell.bytes // itemsize)
        for cell in _with_copies(launch.cells)
    ]
    send = max(need.send * elements for need, elements in needs)
    recv = max(need.recv * elements for need, elements in needs)
    if launch.measurement.cache == "rotating":
        twice = 2 * machine.last_level_cache() // itemsize
        largest = max(elements for _, elements in needs)
        send, recv = send + max(twice, largest), recv + max(twice, largest)
    return send, recv


def _check_memory(comm: MPI.Intracomm, launch: Launch, lengths: tuple[int, int]) -> None:
    pools = len({(cell.kind, cell.locality) for cell in launch.cells})
    needed = sum(lengths) * np.dtype(launch.dtype).itemsize * pools
    require_memory(comm, needed, launch.name)


def _longest_send(launch: Launch) -> int:
    """Elements of the longest send buffer that any rank has in any cell."""
    itemsize = np.dtype(launch.dtype).itemsize
    return (
        max(
            operations.sizes(cell.operation, operations.ROOT, launch.ranks).send * cell.bytes
            for cell in _with_copies(launch.cells)
        )
        // itemsize
    )


def _with_copies(cells: tuple[Cell, ...]) -> Iterator[Cell]:
    """The cells in their order, each kind and size preceded by the copy that bounds it."""
    seen: set[tuple[str, str, int]] = set()
    for cell in cells:
        key = (cell.kind, cell.locality, cell.bytes)
        if key not in seen:
            seen.add(key)
            yield Cell(COPY, cell.transport, cell.kind, cell.locality, cell.bytes)
        yield cell


def _measure(
    comm: MPI.Intracomm,
    launch: Launch,
    pools: dict[tuple[str, str], Pool],
    skipped: dict[tuple[str, str], str],
    progress: Progress,
) -> tuple[list[dict[str, Any]], Samples]:
    cost = timing.clock_cost()
    pattern = operations.ramp(_longest_send(launch), launch.dtype)
    cells: list[dict[str, Any]] = []
    samples: Samples = {}
    planned = list(_with_copies(launch.cells))
    for number, cell in enumerate(planned):
        progress.cells(number, len(planned))
        pool = pools.get((cell.kind, cell.locality))
        reason = pool.lacking.get(cell.transport) if pool else skipped[cell.kind, cell.locality]
        if pool is None or (reason and cell.operation != COPY):
            cells.append(asdict(cell) | {"skipped": reason})
            continue
        found = _time(comm, launch, cell, pool, pattern, cost, progress)
        key = f"c{number:05d}"
        samples[key] = found.seconds
        cells.append(
            asdict(cell)
            | {"samples": key, "warmup": found.warmup, "group": found.group}
            | {"emulated": pool.emulated}
        )
    return cells, samples


def _time(
    comm: MPI.Intracomm,
    launch: Launch,
    cell: Cell,
    pool: Pool,
    pattern: operations.Array,
    cost: float,
    progress: Progress,
) -> timing.Samples:
    """Time one cell, its data checked at the first and at the last iteration."""
    elements = cell.bytes // np.dtype(launch.dtype).itemsize
    slots = pool.slots(cell.operation, elements, comm.rank, comm.size)
    rotating = launch.measurement.cache == "rotating"
    slots = slots[: comm.allreduce(len(slots), MPI.MIN) if rotating else 1]
    moves = comm if cell.operation == COPY else pool.communicators[cell.transport]
    trial = Trial(cell.operation, moves, slots, pattern)
    trial.prepare(0)()
    trial.check()
    gate = _gate(comm, pool.communicators)
    found = timing.measure(trial.prepare, comm, launch.measurement, cost, progress.tick, gate)
    trial.check()
    return found


def _gate(comm: MPI.Intracomm, transports: Mapping[str, MPI.Intracomm]) -> timing.Call:
    """The barrier that sets all ranks off at once.

    MPI's ends what the MPI still has to do. Over a network its ranks leave it microseconds apart,
    and the first one's wait would count as the operation's: where ranks share memory, a barrier
    follows that they leave together.
    """
    if TIGHT not in transports:
        return comm.Barrier
    tight = transports[TIGHT]

    def both() -> None:
        comm.Barrier()
        tight.Barrier()

    return both


def _describe(key: tuple[str, str], pool: Pool) -> dict[str, Any]:
    kind, locality = key
    return {
        "kind": kind,
        "locality": locality,
        "emulated": pool.emulated,
        "nodes": list(pool.nodes),
        "source": hbmcomm.source(pool.send),
        "bytes": pool.send.nbytes + pool.recv.nbytes,
        "placement_method": hbmcomm.placement_method(),
        "placement": {str(node): size for node, size in sorted(pool.placement.items())},
    }


def _summary(every: list[dict[str, Any]], key: str) -> str:
    return "; ".join(sorted({str(each[key]) for each in every}))


def run(folder: Path) -> None:
    """main(), where a rank's error ends all ranks."""
    process.run(main, folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: mpiexec -n N python -m experiments.harness FOLDER")
    run(Path(sys.argv[1]))
