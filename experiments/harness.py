"""The MPI program: reads one launch, measures its cells, writes what it found.

Started as `mpiexec -n N python -m experiments.harness FOLDER` by every environment alike. FOLDER
holds launch.json; progress, result.json and samples.npz are written beside it by rank 0. It draws
nothing, schedules nothing and starts nothing.
"""

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments import footprint
from experiments.measure import (
    cgroup,
    datapath,
    disturbance,
    machine,
    nodes,
    orders,
    process,
    versions,
)
from experiments.measure.buffers import Pool, Unavailable, make_pool, require_memory
from experiments.measure.cells import Cells, barriers
from experiments.measure.progress import Progress
from experiments.measure.told import told
from experiments.schedule import FORMAT, Launch
from experiments.spec import TRANSPORTS
from experiments.turns import Action, conduct


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
    cells = Cells(comm, launch, pools, skipped, progress)
    before = disturbance.counters(cpu)
    asleep = _measure(comm, launch, cells, folder)
    disturbed = disturbance.between(before, disturbance.counters(cpu))
    described = [_describe(key, pools[key]) for key in pools]
    own = {"rank": comm.rank, "cpu": cpu, "pools": described, "asleep": asleep}
    ranks = comm.gather(own | {"disturbance": disturbed})
    environment = surroundings(comm, paths)
    if comm.rank == 0:
        result = {
            "format": FORMAT,
            "launch": launch.to_dict(),
            "environment": environment | {"measurement": {"barrier": barriers(cells.found)}},
            "ranks": ranks,
            "cells": cells.found,
            "began": began,
            "seconds": time.time() - began,
        }
        np.savez(folder / "samples.npz", **cells.samples)  # type: ignore[arg-type]
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
    cache = machine.last_level_cache()
    lengths = footprint.lengths(launch, comm.rank, cache)
    require_memory(comm, footprint.own_bytes(launch, comm.rank, cache), launch.name)
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


def _measure(comm: MPI.Intracomm, launch: Launch, cells: Cells, folder: Path) -> dict[str, float]:
    """Every cell, in the turns that the driver gives; else rank 0 decides as the driver would.

    Returns:
        How long this rank slept between turns, and used the CPU nevertheless: see orders.Orders.
    """
    if orders.are_given(folder):
        given = orders.Orders(folder, comm.rank)
        given.obey(cells.carry_out)
        return given.asleep
    if comm.rank == 0:
        alone = {launch.arm: lambda order: cells.carry_out(comm.bcast(order))}
        conduct(alone, len(launch.plan), launch.measurement, random.Random())
    else:
        while (order := comm.bcast(None)).action is not Action.LEAVE:
            cells.carry_out(order)
    return {}


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
