"""The cells of a launch on one rank: carries out the driver's orders, and keeps what was timed."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.bound import COPY
from experiments.footprint import longest_send
from experiments.measure import operations, timing
from experiments.measure.buffers import Pool, Unavailable
from experiments.measure.pools import Pools
from experiments.measure.progress import Progress
from experiments.measure.timing import Timer
from experiments.measure.trial import Trial
from experiments.schedule import Cell, Launch
from experiments.turns import Action, Answer, Order

TIGHT = "direct"  # ranks leave the barrier of this transport at the same time


class Cells:
    """The cells of a launch, each begun, timed in turns and ended; a collective, each time.

    Attributes:
        found: for each cell that was ended, or cannot be measured, what is stored of it.
        samples: by the keys that `found` names, seconds of its operations and when each began;
            complete on rank 0 only.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        launch: Launch,
        pools: Pools,
        progress: Progress,
    ) -> None:
        self._comm, self._launch, self._pools, self._progress = comm, launch, pools, progress
        self._plan = launch.plan
        self._itemsize = np.dtype(launch.dtype).itemsize
        self._cost = timing.clock_cost()
        self._pattern = operations.ramp(longest_send(launch), launch.dtype)
        self.found: list[dict[str, Any]] = []
        self.samples: dict[str, NDArray[np.floating[Any]]] = {}

    def carry_out(self, order: Order) -> Answer:
        """Do what the driver wants of all ranks now."""
        match order.action:
            case Action.BEGIN:
                return self._begin(order.cell)
            case Action.TURN:
                self._tight = order.tight
                self._timer.gate = self._gate(order.tight)
                self._timer.turn(order.count, order.group)
                return Answer(narrow=self._timer.is_narrow())
            case Action.END:
                self._end(order.cell)
        return Answer()

    def _begin(self, number: int) -> Answer:
        """Make a cell ready; its data is checked after the first operation."""
        cell = self._plan[number]
        self._progress.cells(number, len(self._plan))
        try:
            pool = self._pools.of(cell.memory)
            if cell.operation != COPY:
                pool.require(cell.transport)
        except Unavailable as reason:
            self.found.append(asdict(cell) | {"skipped": str(reason)})
            self._close_after(number)
            return Answer()
        self._emulated = pool.emulated
        self._trial = self._trial_of(cell, pool)
        self._trial.prepare(0)()
        self._trial.check()
        self._starter = pool.communicators.get(TIGHT)
        self._tight = self._starter is not None
        self._timer = Timer(
            *(self._trial.prepare, self._comm, self._cost, self._progress.tick),
            self._gate(self._tight),
        )
        return Answer(seconds=self._timer.seconds, group=self._timer.group, tight=self._tight)

    def _gate(self, tight: bool) -> timing.Call | None:
        """The barrier that sets all ranks off at once, where the cadence is isolated.

        MPI's ends what the MPI still has to do. Over a network its ranks leave it microseconds
        apart, and the first one's wait would count as the operation's: where ranks share memory, a
        barrier follows that they leave together.
        """
        if self._launch.measurement.cadence != "isolated":
            return None
        if not tight or self._starter is None:
            return self._comm.Barrier
        ends, starts = self._comm.Barrier, self._starter.Barrier

        def both() -> None:
            ends()
            starts()

        return both

    def _trial_of(self, cell: Cell, pool: Pool) -> Trial:
        elements = cell.bytes // self._itemsize
        slots = pool.slots(cell.operation, elements, self._comm.rank, self._comm.size)
        rotating = self._launch.measurement.cache == "rotating"
        slots = slots[: self._comm.allreduce(len(slots), MPI.MIN) if rotating else 1]
        moves = self._comm if cell.operation == COPY else pool.communicators[cell.transport]
        return Trial(cell.operation, moves, slots, self._pattern)

    def _end(self, number: int) -> None:
        """Keep what was timed; the data is checked after the last operation."""
        self._trial.check()
        cell, key, taken = self._plan[number], f"c{number:05d}", self._timer.samples()
        self.samples |= {key: taken.seconds, f"{key}.begin": taken.begin}
        self.found.append(
            asdict(cell)
            | {"samples": key, "warmup": taken.warmup, "group": taken.group, "turn": taken.turn}
            | {"begins": f"{key}.begin", "began_ns": list(taken.began)}
            | {"emulated": self._emulated, "barrier": self._barrier()}
        )
        del self._trial, self._timer, self._starter  # they hold the buffers
        self._close_after(number)

    def _close_after(self, number: int) -> None:
        """Give the buffers back after a kind's last cell, before any arm makes the next kind's."""
        memory, *following = [each.memory for each in self._plan[number : number + 2]]
        if following != [memory]:
            self._pools.close()

    def _barrier(self) -> str:
        """The name of what the timed intervals of the cell began with."""
        if self._launch.measurement.cadence != "isolated":
            return "none"
        return f"the MPI's, then {TIGHT}'s" if self._tight else "the MPI's"


def barriers(found: Iterable[Mapping[str, Any]]) -> str:
    """The names of the barriers that cells began with."""
    return "; ".join(sorted({cell["barrier"] for cell in found if "barrier" in cell}))
