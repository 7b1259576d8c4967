"""How long a campaign takes on a machine, and how much memory its arms hold at once. Pure.

An estimate from the schedule, the time caps and one rate of copying: it knows nothing of how well
an MPI does.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from experiments.baselines.launches import COUNTERPARTS, measures
from experiments.model.launch import Block, Cell, Launch
from experiments.model.lower_bound import COPY, least_seconds, least_wire_seconds
from experiments.model.quantities import parse_rate
from experiments.model.workloads import WORKLOADS
from experiments.schedule import footprint
from experiments.schedule.turns import FIRST, MOST_ROUNDS

START = 1.5  # seconds until the ranks of a launch wait for orders, MPI_Init and imports included
CONTAINER_START = 1.0  # seconds more for a container
CELL = 0.03  # seconds to begin and end a cell and to give its turns
WARM_UP = 10  # operations of a cell before those that count, about
CALL = 5e-6  # seconds of an operation without data
STEP = 0.02  # seconds of a workload's step
YIELD = 1e-3  # seconds more where ranks share a CPU
OVER_LINKS = 3.0  # how many times as long as the links need operations take, at the most


@dataclass(frozen=True)
class Host:
    """What the estimate needs to know of a machine.

    Attributes:
        cores: CPUs that ranks may be pinned to.
        copied: bytes per second that one core copies.
        cache: bytes of the last-level cache.
    """

    cores: int
    copied: float
    cache: int


def together(blocks: Sequence[Block], cache: int) -> dict[str, int]:
    """By kind of memory, bytes of all buffers of the block that needs most.

    Its arms are alive at once, and hold one kind at a time.
    """
    distinct = {_alike(launch): launch for block in blocks for launch in block.launches}
    sizes = {key: _sizes(_own(launch), cache) for key, launch in distinct.items()}
    most: dict[str, int] = {}
    for block in blocks:
        held = [sizes[_alike(launch)] for launch in block.launches]
        for kind in sorted({kind for by_kind in held for kind in by_kind}):
            most[kind] = max(most.get(kind, 0), sum(by_kind.get(kind, 0) for by_kind in held))
    return most


def seconds(launches: Sequence[Launch], host: Host) -> float:
    """About the most that launches take, one after the other; time caps are taken to be used up."""
    distinct = {_alike(launch): launch for launch in launches}
    counts = Counter(map(_alike, launches))
    return sum(counts[key] * _seconds(_own(launch), host) for key, launch in distinct.items())


def _alike(launch: Launch) -> tuple[str, int, bool, str, str]:
    """What distinguishes a campaign's launches here: their cells differ in order alone.

    Where MPIs are the arms, an MPI in a setting has contenders of its own.
    """
    mpi = launch.mpi if launch.setting else ""
    return launch.program, launch.ranks, bool(launch.layout), mpi, launch.setting


def lines(blocks: Sequence[Block], host: Host, memory: int, hbm: Mapping[int, int]) -> list[str]:
    """What the blocks of a schedule come to, in lines for a user.

    Args:
        memory: bytes that are available.
        hbm: {node: bytes} of the machine's HBM; none where it has none.
    """
    launches = [launch for block in blocks for launch in block.launches]
    held = together(blocks, host.cache)
    sizes = ", ".join(f"{kind} {size / 2**30:.2f} GiB" for kind, size in held.items())
    nodes = ", ".join(f"node {node}: {size / 2**30:.2f} GiB" for node, size in hbm.items())
    shown = [
        f"{len(launches)} launches in {len(blocks)} blocks: up to about "
        + duration(seconds(launches, host)),
        f"buffers alive at once, at most: {sizes}; available: {memory / 2**30:.2f} GiB; HBM: "
        + (nodes or "none here"),
    ]
    fast = (size for kind, size in held.items() if hbm and footprint.in_hbm(kind))
    too_much = max(fast, default=0) > footprint.NODE_SHARE * sum(hbm.values())
    if too_much or max(held.values()) > footprint.MEMORY_SHARE * memory:
        shown.append(
            "not all of it fits at once: where a block does not fit, its arms run one after the "
            "other, and a launch that does not fit alone is refused: ask for smaller --sizes"
        )
    return shown


def duration(seconds: float) -> str:
    """Seconds in words for a user."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _own(launch: Launch) -> Launch:
    """The launch with the cells that its program measures."""
    if launch.program not in COUNTERPARTS:
        return launch
    return replace(launch, cells=tuple(c for c in launch.cells if measures(launch.program, c)))


def _sizes(own: Launch, cache: int) -> dict[str, int]:
    """By kind, bytes of a launch's buffers."""
    sizes = {}
    for kind in {cell.kind for cell in own.cells}:
        of_kind = replace(own, cells=tuple(cell for cell in own.cells if cell.kind == kind))
        sizes[kind] = _held(of_kind, cache)
    return sizes


def _held(launch: Launch, cache: int) -> int:
    return sum(footprint.own_bytes(launch, rank, cache) for rank in range(launch.ranks))


def _seconds(own: Launch, host: Host) -> float:
    begun = START + (CONTAINER_START if own.layout else 0.0)
    pools = len({cell.memory for cell in own.cells})
    filled = pools * _held(own, host.cache) / host.copied
    return begun + filled + sum(_cell(cell, own, host) for cell in own.plan)


def _cell(cell: Cell, launch: Launch, host: Host) -> float:
    """Operations until the time cap or the most iterations, and those that do not count."""
    one, asked = _operation(cell, launch, host), launch.measurement
    timed = max(asked.time_cap, asked.min_iterations * one)
    if cell.operation not in WORKLOADS:  # which compute for longer than is known here
        timed = min(timed, asked.max_iterations * one)
    rounds = min(MOST_ROUNDS, timed / one)
    return CELL + timed + (WARM_UP + rounds * FIRST) * one


def _operation(cell: Cell, launch: Launch, host: Host) -> float:
    """One operation."""
    if cell.operation in WORKLOADS:
        return STEP + _on_links(cell, launch)
    working = min(launch.ranks, host.cores)
    copy = launch.ranks * cell.bytes / (host.copied * working)  # of all ranks at once
    one = CALL + copy + least_seconds(cell.operation, launch.ranks, copy)  # rewriting, then moving
    if launch.ranks > host.cores and cell.operation != COPY:
        one += YIELD
    return one + OVER_LINKS * _on_links(cell, launch)


def _on_links(cell: Cell, launch: Launch) -> float:
    """What an operation takes the links of emulated hosts."""
    where = launch.environment
    if not where.on_hosts or cell.operation == COPY:
        return 0.0
    per_host, more = divmod(launch.ranks, where.hosts)
    hosts = [per_host + (number < more) for number in range(where.hosts)]
    rate = parse_rate(where.rate)
    least = least_wire_seconds(cell.operation, hosts, cell.bytes, rate)
    if math.isnan(least):  # a workload: at most, a server takes from all and gives to all
        return 2 * launch.ranks * cell.bytes * 8 / rate
    return least
