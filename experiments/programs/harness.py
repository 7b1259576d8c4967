"""The MPI program: reads one launch, measures its cells, writes what it found.

Every environment starts it as `mpiexec -n N python -m experiments.programs.harness FOLDER`.
FOLDER holds launch.json; rank 0 writes progress, result.json and samples.npz beside it. It draws
nothing, schedules nothing and starts nothing.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mpi4py import MPI

from experiments.implementations.entrants import Entrants
from experiments.machine import cgroup, datapath, facts, links, versions
from experiments.machine.datapath import report
from experiments.measure import lines, orders
from experiments.measure.lines import Progress
from experiments.measure.pools import Pools
from experiments.model.launch import Launch
from experiments.processes.executables import die_with_parent
from experiments.programs import rank_process
from experiments.programs.cells import Cells, barriers
from experiments.programs.launch_folder import read_launch, write_result
from experiments.schedule.turns import Action, Answer, Order, conduct, numbers


def main(folder: Path) -> None:
    """One rank's whole life."""
    die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    launch = read_launch(folder)
    check_size(launch, comm.size)
    began = time.time()
    paths = datapath.probe(comm)  # before pinning, to see what the environment allows
    allowed = os.sched_getaffinity(0)
    cpu = rank_process.pin(rank_process.position_here(comm), launch.binding)
    pools = Pools(comm, launch, cpu)
    entrants = Entrants(comm, launch, folder, allowed)
    progress = Progress(folder / "progress" if comm.rank == 0 else None)
    wires = links.Links(comm)
    cells = Cells(comm, launch, pools, entrants, progress, wires)
    own = measure(comm, launch, cells.carry_out, folder, partial(cgroup.counters, cpu))
    ranks = comm.gather(own | {"cpu": cpu, "pools": pools.described})
    hosts = {"hosts": host_records} if (host_records := wires.described()) else {}
    environment = surroundings(comm, paths)
    if comm.rank == 0:
        environment |= {"measurement": {"barrier": barriers(cells.found)}, **hosts}
        parts = {"environment": environment, "ranks": ranks, "cells": cells.found}
        write_result(folder, launch.to_dict(), began, cells.samples, **parts)
    entrants.close()


def check_size(launch: Launch, size: int) -> None:
    """Refuse a job of another number of ranks than its launch asks for.

    Where launcher and MPI do not understand each other, every rank is alone in a job of its own,
    and all of them end with exit code 0.

    Raises:
        SystemExit: with what to do about it.
    """
    if launch.ranks == size:
        return
    advice = "start as many"
    if size == 1:
        advice = (
            f"ranks that do not find each other were started through a PMI that {launch.mpi} does "
            "not have: choose another one (srun --mpi, or [SITE.pmi] of sites.toml)"
        )
    raise SystemExit(
        f"launch {launch.name} asks for {launch.ranks} ranks; found {size} in COMM_WORLD: {advice}"
    )


def surroundings(comm: MPI.Intracomm, paths: dict[str, object]) -> dict[str, Any]:
    """What a launch ran on and with, as its result has it; empty on ranks but 0; a collective.

    For the end of a launch: it sends messages of its own. `paths` are this rank's, as probed.
    """
    reported = report(comm)
    every = comm.gather(paths)
    if every is None:
        return {}
    summaries = {
        tried: "; ".join(sorted({str(probe[tried]) for probe in every})) for tried in datapath.TRIED
    }
    return software_and_machine() | {"datapath": every[0] | summaries | {"told": reported}}


def software_and_machine() -> dict[str, Any]:
    """What every result holds of this rank's software and machine."""
    return {
        "versions": versions.versions(),
        "hashes": versions.hashes(),
        "machine": facts.machine() | cgroup.limits(),
        "topology": facts.nodes(),
    }


def measure(
    comm: MPI.Intracomm,
    launch: Launch,
    carry_out: Callable[[Order], Answer],
    folder: Path,
    counters: Callable[[], cgroup.Counters],
) -> dict[str, Any]:
    """Measure every cell in the turns that the driver gives; without a driver rank 0 decides.

    What disturbs this rank is counted from its first order on. Before that the other launches of
    its block still start, on the same CPUs: what they import would count as work of others.

    Returns:
        What a result holds of this rank: "rank", its number; "asleep", how long it slept between
        the driver's turns, as orders.obey() has it; "disturbance", as cgroup.between() has it.
    """
    before: cgroup.Counters | None = None

    def observed(order: Order) -> Answer:
        nonlocal before
        before = before or counters()
        return carry_out(order)

    asleep: dict[str, float] = {}
    if lines.are_there(folder):
        asleep = orders.obey(folder, comm.rank, observed)
    else:
        _conduct_alone(comm, launch, observed)
    after = counters()
    disturbed = cgroup.between(before or after, after)
    return {"rank": comm.rank, "asleep": asleep, "disturbance": disturbed}


def _conduct_alone(
    comm: MPI.Intracomm, launch: Launch, carry_out: Callable[[Order], Answer]
) -> None:
    """Carry out what rank 0 decides by turns.conduct(), as a driver would; a collective."""

    def of_all(order: Order) -> Answer:
        comm.bcast(order)
        return Answer() if order.action is Action.LEAVE else carry_out(order)

    if comm.rank == 0:
        arm = {"": lambda given: [of_all(order) for order in given]}
        conduct(arm, numbers(launch.contests), launch.measurement, launch.order)
    else:
        while (order := comm.bcast(None)).action is not Action.LEAVE:
            carry_out(order)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: mpiexec -n N python -m experiments.programs.harness FOLDER")
    rank_process.run(main, Path(sys.argv[1]))
