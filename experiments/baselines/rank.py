"""One rank of a baseline: pins itself, touches its buffers, measures by the harness's own code.

Clock, warm-up, turns, groups, checks of data and placement are those of measure/.
"""

import os
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from mpi4py import MPI

import hbmcomm
from experiments.baselines.group import Group
from experiments.baselines.launches import (
    COUNTERPARTS,
    DIFFERENCES,
    KIND,
    LOCALITY,
    THREADS,
    measures,
)
from experiments.implementations.entrants import Entrants
from experiments.machine import cgroup, facts
from experiments.measure.buffers import Pool, placement_of, recorded, require_memory
from experiments.measure.lines import Progress
from experiments.measure.operations import Array
from experiments.model.contender_names import DIRECT, NO_TRANSPORT
from experiments.model.launch import Launch
from experiments.programs import harness, rank_process
from experiments.programs.cells import Cells
from experiments.programs.launch_folder import write_result
from experiments.schedule import footprint
from experiments.schedule.turns import Action, Answer, Order

BARRIER = "flags in shared memory"
"""The barrier before each operation: ranks leave it together, as they leave direct's."""


@dataclass(frozen=True)
class Team:
    """What a rank works with: the other ranks, and its own memory.

    Attributes:
        comm: for the decisions of rank 0.
        ways: {transport: what its operations call in the turns of that transport}.
        send, recv: flat untouched arrays; lengths as footprint.lengths().
        lacking: {transport: why it cannot be measured}; alike on every rank.
    """

    comm: Group
    ways: Mapping[str, Group]
    send: Array
    recv: Array
    lacking: Mapping[str, str] = field(default_factory=dict)


Work = Callable[[Team], None]


def measure(team: Team, launch: Launch, folder: Path, began: float) -> None:
    """One rank's whole measurement, which rank 0 writes; `began`: seconds since the epoch."""
    comm = cast(MPI.Intracomm, team.comm)  # it has what is asked of it
    allowed = os.sched_getaffinity(0)
    cpu = rank_process.pin(comm.rank, launch.binding)
    own = replace(launch, cells=tuple(c for c in launch.cells if measures(launch.program, c)))
    require_memory(comm, footprint.own_bytes(own, comm.rank, facts.last_level_cache()), own.name)
    pool = _pool(team)
    progress = Progress(folder / "progress" if comm.rank == 0 else None)
    entrants = Entrants(comm, launch, folder, allowed)
    kept: Any = SimpleNamespace(of=lambda _: pool, close=lambda: None)  # for all cells, to the end
    cells = Cells(comm, launch, kept, entrants, progress)
    plan = launch.plan
    who = resource.RUSAGE_THREAD if launch.program == THREADS else resource.RUSAGE_SELF

    def carry_out(order: Order) -> Answer:
        if order.action is Action.BEGIN and not measures(launch.program, plan[order.cell]):
            return Answer()
        return cells.carry_out(order)

    counters = partial(cgroup.counters, cpu, who=who)
    rank = harness.measure(comm, launch, carry_out, folder, counters)
    memory = recorded(pool, LOCALITY, placement_of(pool.send, pool.recv))
    ranks = comm.gather(rank | {"cpu": cpu, "pools": [memory]})
    if ranks is None:
        return
    names = COUNTERPARTS[launch.program]
    renamed = [
        cell
        | {"transport": names.get(cell["transport"], NO_TRANSPORT)}
        | ({"barrier": BARRIER} if cell.get("barrier") else {})
        for cell in cells.found
    ]
    environment = harness.software_and_machine()
    external = {
        "version": f"Python {environment['versions']['python']}",
        "differences": [DIFFERENCES[launch.program]],
    }
    write_result(
        folder,
        launch.to_dict(),
        began,
        cells.samples,
        environment=environment | {"measurement": {"barrier": BARRIER}},
        ranks=ranks,
        cells=renamed,
        external=external,
    )


def _pool(team: Team) -> Pool:
    for array in (team.send, team.recv):
        array.fill(team.comm.rank + 1)
    kind = hbmcomm.resolve(KIND)
    return Pool(
        communicators=cast(Mapping[str, MPI.Intracomm], {**team.ways, DIRECT: team.comm}),
        lacking=team.lacking,
        kind=KIND,
        emulated=kind.emulated,
        nodes=kind.nodes,
        send=team.send,
        recv=team.recv,
        placement=placement_of(team.send, team.recv),
        strict=False,
    )


def ended_by_any_error(rank: int, work: Callable[[], None]) -> None:
    """Run work(); an error ends the whole process, since other ranks wait for it."""
    try:
        work()
    except BaseException as error:
        rank_process.report(rank, error)
        os._exit(1)
