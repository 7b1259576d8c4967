"""The cells of a launch on one rank: carries out the driver's orders, and keeps what was timed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.implementations.entrants import Entrants
from experiments.implementations.trial import Rotation, Trial
from experiments.machine.facts import Traffic
from experiments.machine.links import NOTHING, Links
from experiments.measure import operations, timing
from experiments.measure.buffers import Pool, Unavailable
from experiments.measure.lines import Progress
from experiments.measure.pools import Pools
from experiments.measure.timing import Timer
from experiments.model.contender_names import is_ours
from experiments.model.errors import WrongResult
from experiments.model.launch import Cell, Launch
from experiments.schedule.footprint import longest_send
from experiments.schedule.turns import Action, Answer, Order


@dataclass
class Begun:
    """A cell from its first operation to its last.

    Attributes:
        barrier: the name of what starts its ranks.
        carried: by the link of this host in all turns, of so many `operations`.
    """

    trial: Trial
    timer: Timer
    pool: Pool
    barrier: str
    carried: Traffic = NOTHING
    operations: int = 0


class Cells:
    """The cells of a launch, each begun, timed in turns and ended; a collective, each time.

    Attributes:
        samples: by the keys that `found` names, seconds of its operations and when each began;
            complete on rank 0 only.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        launch: Launch,
        pools: Pools,
        entrants: Entrants,
        progress: Progress,
        links: Links | None = None,
    ) -> None:
        self._comm, self._launch, self._progress, self._links = comm, launch, progress, links
        self._pools, self._entrants = pools, entrants
        self._plan = [(n, cell) for n, cells in enumerate(launch.contests) for cell in cells]
        self._left = Counter(cell.memory for _, cell in self._plan)
        self._itemsize = np.dtype(launch.dtype).itemsize
        self._cost = timing.clock_cost()
        self._pattern = operations.ramp(longest_send(launch), launch.dtype)
        self._begun: dict[int, Begun] = {}
        self._rotations: dict[tuple[int, bool], Rotation] = {}  # by contest, and if over the pool
        self._found: dict[int, dict[str, Any]] = {}
        self.samples: dict[str, NDArray[np.floating[Any]]] = {}

    @property
    def found(self) -> list[dict[str, Any]]:
        """The stored record of each cell that ended or cannot be measured, in order."""
        return [self._found[number] for number in sorted(self._found)]

    def carry_out(self, order: Order) -> Answer:
        """Carry out the driver's next order on all ranks."""
        self._comm.Barrier()  # all ranks know now which contender has the turn
        match order.action:
            case Action.BEGIN:
                return self._begin(order.cell)
            case Action.TURN:
                return self._turn(order)
            case Action.END:
                self._end(order.cell)
        return Answer()

    def _begin(self, number: int) -> Answer:
        """Make a cell ready and check its first result."""
        contest, cell = self._plan[number]
        self._progress.cells(number, len(self._plan))
        try:
            pool = self._pools.of(cell.memory)
            trial = self._trial_of(contest, cell, pool)
        except Unavailable as reason:
            self._keep(number, {"skipped": str(reason)})
            return Answer()
        tight = self._entrants.is_tight(pool)
        gate, barrier = self._entrants.gate(pool, tight)
        tick, warmup = self._progress.tick, self._entrants.warmup(cell)
        with trial.awake():
            if not self._is_right(number, trial):
                return Answer()
            timer = Timer(trial.prepare, self._comm, self._cost, tick, gate, warmup)
        self._begun[number] = Begun(trial, timer, pool, barrier)
        return Answer(timer.seconds, timer.group, tight, pace=timer.pace)

    def _turn(self, order: Order) -> Answer:
        begun = self._begun[order.cell]
        begun.timer.gate, begun.barrier = self._entrants.gate(begun.pool, order.tight)
        before = self._count()
        with begun.trial.awake():
            begun.operations += begun.timer.turn(order.count, order.group, order.between)
        begun.carried = begun.carried.plus(self._count().since(before))
        return Answer(narrow=begun.timer.is_narrow())

    def _count(self) -> Traffic:
        return self._links.count() if self._links else NOTHING

    def _trial_of(self, contest: int, cell: Cell, pool: Pool) -> Trial:
        """Raises Unavailable where these ranks cannot measure the cell."""
        contender, memory = self._entrants.of(cell, pool)
        elements = cell.bytes // self._itemsize
        slots = memory.slots(cell.operation, elements, self._comm.rank, self._comm.size)
        rotating = self._launch.measurement.cache == "rotating"
        slots = slots[: self._comm.allreduce(len(slots), MPI.MIN) if rotating else 1]
        shared = self._rotations.setdefault((contest, memory is pool), Rotation())
        try:
            return Trial(cell.operation, self._comm, slots, self._pattern, contender, shared)
        except NotImplementedError:
            raise Unavailable(self._entrants.lacks(cell)) from None

    def _end(self, number: int) -> None:
        """Keep the samples if the last result is right as well."""
        contest, _ = self._plan[number]
        begun = self._begun.pop(number)  # it holds the buffers
        with begun.trial.awake():
            if not self._is_right(number, begun.trial):
                return
        begun.trial.close()
        key, taken = f"c{number:05d}", begun.timer.samples()
        self.samples |= {key: taken.seconds, f"{key}.begin": taken.begin}
        record = {"samples": key, "warmup": taken.warmup, "group": taken.group, "turn": taken.turn}
        record |= {"begins": f"{key}.begin", "began_ns": list(taken.began), "contest": contest}
        record |= {"emulated": begun.pool.emulated, "barrier": begun.barrier}
        if self._links and (carried := self._links.gathered(begun.carried)):
            record["links"] = {"operations": begun.operations, **carried}
        del begun
        self._keep(number, record)

    def _is_right(self, number: int, trial: Trial) -> bool:
        """Whether the data is right; a peer with wrong data is recorded and ended."""
        try:
            trial.check()
        except WrongResult as wrong:
            if is_ours(self._plan[number][1].transport) or not self._launch.spares_peers:
                raise WrongResult(f"{wrong}; this launch is void") from None
            trial.close()
            self._keep(number, {"wrong": str(wrong)})
            return False
        return True

    def _keep(self, number: int, record: Mapping[str, Any]) -> None:
        """Store the cell; after the last one of a kind, free its buffers for other arms."""
        _, cell = self._plan[number]
        self._found[number] = asdict(cell) | dict(record)
        self._left[cell.memory] -= 1
        if not self._left[cell.memory]:
            self._pools.close()


def barriers(records: Iterable[Mapping[str, Any]]) -> str:
    """The names of the barriers that cells began with."""
    return "; ".join(sorted({cell["barrier"] for cell in records if "barrier" in cell}))
