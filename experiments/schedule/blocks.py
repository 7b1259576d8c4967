"""Experiment -> randomised, paired blocks of launches, and which of them run at the same time.

Pure: one seed, one schedule.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain, product

from experiments.model.arms import ALONE, HOST, arms
from experiments.model.experiment import MPIS_ARE_ARMS, Experiment, Factors
from experiments.model.launch import ARENA, NUMPY, Block, Cell, Launch, Measurement
from experiments.model.lower_bound import BARRIER
from experiments.model.workloads import carries, nbytes

Fits = Callable[[Sequence[Launch]], bool]
"""Whether there is memory for the buffers of launches at once."""


def schedule(experiment: Experiment, seed: int) -> tuple[Block, ...]:
    """All blocks of a campaign, in the order in which they run.

    Each replicate visits every combination of MPI, ranks and binding once, in random order, so that
    a slow drift of the machine falls on all of them alike.
    """
    rng = random.Random(seed)
    asked = experiment.launches
    mpis = ("",) if asked.arms == MPIS_ARE_ARMS else asked.mpis
    blocks: list[Block] = []
    for _ in range(asked.blocks):
        places = list(product(mpis, asked.ranks, asked.bindings))
        rng.shuffle(places)
        for mpi, ranks, binding in places:
            launches = _launches(experiment, len(blocks), mpi, ranks, binding, rng)
            seeded = tuple(replace(launch, seed=seed) for launch in launches)
            blocks.append(Block(len(blocks), seeded))
    return tuple(blocks)


def reference(block: Block) -> Launch | None:
    """The launch of the reference arm, if it takes turns."""
    references = (launch for launch in block.launches if launch.arm == HOST and launch.takes_turns)
    return next(references, None)


def alone(block: Block) -> Launch | None:
    """The reference arm of a block without company; None where the block has none."""
    host = reference(block)
    return host and replace(host, arm=ALONE)


def parties(block: Block, waiting: Sequence[Launch], fits: Fits) -> list[list[Launch]]:
    """The launches that take turns together; the others one by one.

    Where the buffers of all do not fit at once, or the reference arm is finished already, each arm
    takes turns with the reference arm alone, which is launched again for each: a ratio over it
    stays one of turns.

    Args:
        waiting: those of the block's launches that are not finished.
    """
    company = [launch for launch in waiting if launch.takes_turns]
    host = reference(block)
    complete = host is None or host in company
    if complete and len(company) > 1 and fits(company):
        together = [company]
    else:
        together = [pair for pair in _pairs(host, company) if fits(pair)]
    names = {launch.name for launch in chain(*together)}
    return [*together, *([launch] for launch in waiting if launch.name not in names)]


def _pairs(host: Launch | None, company: Sequence[Launch]) -> list[list[Launch]]:
    """Each arm with the reference arm, which is launched again for all but its first pair."""
    if host is None:
        return []
    others = [launch for launch in company if launch.arm != HOST]
    pairs = [[replace(host, beside=other.arm), other] for other in others]
    if pairs and host in company:
        pairs[0][0] = host
    return pairs


def varied(launches: Sequence[Launch]) -> dict[str, str]:
    """{name: where these vary its MPI, ranks and binding: " (4 ranks, spread)"}.

    Blocks are numbered over every MPI, rank count and binding: a number alone looks like one more
    replicate.

    Args:
        launches: all of a campaign.
    """
    forms = {"mpi": "{}", "ranks": "{} ranks", "binding": "{}"}
    if any(launch.setting for launch in launches):
        del forms["mpi"]  # those of a block run at the same time
    several = [key for key in forms if len({getattr(launch, key) for launch in launches}) > 1]
    levels = {}
    for launch in launches:
        place = ", ".join(forms[key].format(getattr(launch, key)) for key in several)
        levels[launch.name] = f" ({place})" if place else ""
    return levels


def _launches(
    experiment: Experiment, number: int, mpi: str, ranks: int, binding: str, rng: random.Random
) -> list[Launch]:
    factors, measurement = experiment.factors, Measurement(**asdict(experiment.measurement))
    every = _shuffled_cells(factors, rng)  # for all arms alike: they take turns
    cells = {arm: tuple(filter(arm.measures, every)) for arm in arms(experiment.launches, mpi)}
    order = [arm for arm, own in cells.items() if own]
    rng.shuffle(order)
    return [
        Launch(
            experiment=experiment.name,
            block=number,
            arm=arm.name,
            environment=arm.environment,
            profile=arm.profile,
            layout=arm.layout,
            program=arm.program,
            mpi=arm.mpi or mpi,
            ranks=ranks,
            binding=binding,
            dtype=factors.dtype,
            measurement=measurement,
            cells=cells[arm],
            setting=arm.setting,
            hbw_policy=arm.hbw_policy,
        )
        for arm in order
    ]


def _shuffled_cells(factors: Factors, rng: random.Random) -> tuple[Cell, ...]:
    every = dict.fromkeys(_of_trials(factors)) if factors.trials else _combined(factors)
    cells = list(every)
    rng.shuffle(cells)
    return tuple(cells)


def _of_trials(factors: Factors) -> Iterator[Cell]:
    """What takes turns to place each threshold."""
    for trial in factors.trials:
        kind, buffers = ("regular", NUMPY) if trial.private else (factors.kinds[0], ARENA)
        for cell, contender in product(trial.cells, trial.contenders):
            yield Cell(cell.operation, contender, kind, "local", cell.bytes, buffers)


def _combined(factors: Factors) -> dict[Cell, None]:
    return {
        Cell(op, transport, kind, locality, _bytes(op, size), buffers, form): None
        for op, transport, kind, locality, size, buffers, form in product(
            factors.operations,
            factors.transports,
            factors.kinds,
            factors.localities,
            factors.sizes,
            factors.buffers,
            factors.forms,
        )
        if size <= factors.largest.get(transport, size) and carries(op, transport)
    }


def _bytes(operation: str, size: int) -> int:
    return 0 if operation == BARRIER else nbytes(operation, size)
