"""What a container costs a user's program, and why: from the stored runs alone.

A ratio is a block's time in one environment over that of the reference in the same block; its
interval is of the median over blocks. A cause is a difference between environments that is known to
cost time, not one that was shown to: what shows it is the run with its remedy.
"""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from experiments.analysis.statistics import Interval, median_ratio
from experiments.environments.profiles import shared_memory
from experiments.environments.program import LAUNCHERS, ON_HOSTS
from experiments.model.program import BAND_NAMES, POLLING, CallCount, Timed
from experiments.model.quantities import bytes_text, counted
from experiments.results.program_runs import ArmRun, Habitat, ProgramRuns

LIBRARIES = {"BLAS": "work", "Python": "work", "C library": "work", "MPI": "MPI"}
"""What of a program another one of these can slow down."""
OF_MPI = ("OMPI_", "MPICH_", "I_MPI_", "UCX_")
MOST_CALLS = 3  # that are named as slower
NOTABLE = 0.005  # of the time: a call that takes less of it is not named


@dataclass(frozen=True)
class CallCost:
    """Calls of one function and one range of sizes in one environment.

    Attributes:
        name: "Allreduce, up to 4 KiB".
        share: of the time, by the mean over ranks.
        ratio: seconds a call over those in the reference.
        calls: in a run, of all ranks.
    """

    name: str
    share: float
    ratio: Interval
    calls: int


@dataclass(frozen=True)
class Cause:
    """A difference between an environment and the reference that can cost time.

    Attributes:
        part: "MPI" or "work": what of the program it can slow down; "" for both.
    """

    text: str
    remedy: str
    part: str = ""


@dataclass(frozen=True)
class ArmCost:
    """What one environment costs.

    Attributes:
        ratio: its time over the reference's; where a window is measured, MPI's calls or the
            program's own figure in the same time, so that above 1 is slower as well.
        metric: the program's own figure over that in the reference.
        seconds, started, readied: medians; `mpi` of them the time in calls of MPI.
        slower: calls that take longer, those first that add most.
    """

    arm: str
    ratio: Interval
    seconds: float
    mpi: float
    started: float
    readied: float
    metric: Interval | None
    slower: tuple[CallCost, ...]
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class Lines:
    """How far apart two CPUs were: nanoseconds of a cache line from one to the other and back.

    Attributes:
        low, high: between which 90 % of the slices were.
        apart: by how much, at most, an environment's slices met another time than the reference's,
            as a share; of each environment the median over blocks.
    """

    low: float
    high: float
    apart: float


@dataclass(frozen=True)
class ProgramCost:
    """The answer of a campaign.

    Attributes:
        costs: of each environment, the reference first.
        twin: the ratio of the reference's A/A pair; None without one.
        blocks: that have all environments; in_turns: those of them that took turns.
        window: seconds that were measured of each run; 0.0: to the end.
        lines: None where they were not measured.
    """

    costs: tuple[ArmCost, ...]
    twin: Interval | None
    blocks: int
    in_turns: int
    timed: Timed
    window: float
    lines: Lines | None = None

    @property
    def floor(self) -> float:
        """What equals may differ by; NaN without an A/A pair or with too few blocks."""
        if self.twin is None:
            return float("nan")
        return max(self.twin.high - 1, 1 - self.twin.low)


def cost_of(runs: ProgramRuns) -> ProgramCost:
    """What each environment of a campaign costs over the first one."""
    habitats, request = runs.habitats, runs.header.request
    reference, again = (arm.name for arm in request.arms[:2])
    by_arm: dict[str, dict[int, ArmRun]] = {}
    for block in runs.blocks:
        for run in block.runs:
            by_arm.setdefault(run.arm, {})[block.number] = run
    ranks = max((habitat.ranks for habitat in habitats.values()), default=0) or 1
    usual = by_arm.get(reference, {})
    time = _time(by_arm, request.seconds)
    costs = [
        _cost(arm, own, usual, habitats, reference, ranks, time)
        for arm, own in by_arm.items()
        if arm != again and usual
    ]
    costs.sort(key=lambda cost: [arm.name for arm in request.arms].index(cost.arm))
    twin = None
    if again in by_arm:
        twin = _paired(by_arm[again], usual, time)
    whole = [block for block in runs.blocks if not block.lost]
    return ProgramCost(
        tuple(costs),
        twin,
        len(whole),
        sum(block.in_turns for block in whole),
        Timed(next(iter(habitats.values())).timed),
        request.seconds,
        _lines(by_arm, reference),
    )


def _lines(by_arm: dict[str, dict[int, ArmRun]], reference: str) -> Lines | None:
    def mean(run: ArmRun) -> float:
        seen = [line for line in run.lines if line]
        return statistics.fmean(seen) if seen else 0.0

    every = [
        line for runs in by_arm.values() for run in runs.values() for line in run.lines if line
    ]
    if len(every) < 2:
        return None
    usual = {number: mean(run) for number, run in by_arm.get(reference, {}).items()}
    apart = []
    for runs in by_arm.values():
        own = {number: mean(run) for number, run in runs.items()}
        if ratios := [own[n] / usual[n] for n in own if own[n] and usual.get(n)]:
            apart.append(abs(statistics.median(ratios) - 1))
    cuts = statistics.quantiles(every, n=20)
    return Lines(cuts[0], cuts[-1], max(apart, default=0.0))


def _cost(
    arm: str,
    own: dict[int, ArmRun],
    usual: dict[int, ArmRun],
    habitats: dict[str, Habitat],
    reference: str,
    ranks: int,
    time: Callable[[ArmRun], float],
) -> ArmCost:
    def median(of: Callable[[ArmRun], float]) -> float:
        return statistics.median(map(of, own.values()))

    metric = None
    if all(run.metric for run in (*own.values(), *usual.values())):
        metric = _paired(own, usual, lambda run: run.metric or 0.0)
    here, there = habitats.get(arm), habitats[reference]
    return ArmCost(
        arm,
        _paired(own, usual, time),
        median(lambda run: run.seconds),
        median(lambda run: _in_mpi(run.calls.values()) / ranks),
        median(lambda run: run.started),
        median(lambda run: run.readied),
        metric,
        tuple(_slower(own, usual, ranks)) if arm != reference else (),
        tuple(causes(here, there, ranks)) if here and arm != reference else (),
    )


def _time(by_arm: dict[str, dict[int, ArmRun]], window: float) -> Callable[[ArmRun], float]:
    """What is compared of a run: seconds, or in a window the seconds for the same progress.

    That is the program's own figure where all runs have it, else calls of MPI.
    """
    if not window:
        return lambda run: run.seconds
    if all(run.metric for runs in by_arm.values() for run in runs.values()):
        return lambda run: run.seconds / (run.metric or math.nan)

    def by_calls(run: ArmRun) -> float:
        counts = (sum(count.calls) for name, count in run.calls.items() if name not in POLLING)
        return run.seconds / (sum(counts) or math.nan)

    return by_calls


def _paired(
    own: dict[int, ArmRun], usual: dict[int, ArmRun], of: Callable[[ArmRun], float]
) -> Interval:
    """The ratio over the blocks that have both."""
    pairs = [(of(own[number]), of(usual[number])) for number in own if number in usual]
    return median_ratio([above / below for above, below in pairs if above > 0 and below > 0])


def _in_mpi(counts: Iterable[CallCount]) -> float:
    """Seconds of all ranks."""
    return sum(sum(count.nanoseconds) for count in counts) / 1e9


def _slower(own: dict[int, ArmRun], usual: dict[int, ArmRun], ranks: int) -> list[CallCost]:
    """The calls that take longer than in the reference, as their intervals say."""
    slower: list[tuple[float, CallCost]] = []
    names = sorted({name for run in own.values() for name in run.calls})
    for name in names:
        for band, size in enumerate(BAND_NAMES):
            both = [
                (own[number], usual[number])
                for number in own
                if number in usual and _spent(own[number], name, band)
                if _spent(usual[number], name, band)
            ]
            if not both:
                continue
            ratio = median_ratio(
                [_seconds_a_call(a, name, band) / _seconds_a_call(b, name, band) for a, b in both]
            )
            seconds = statistics.median(_spent(a, name, band) for a, _ in both) / ranks
            more = statistics.median(
                (_spent(a, name, band) - _spent(b, name, band)) / ranks for a, b in both
            )
            whole = statistics.median(a.seconds for a, _ in both)
            share = seconds / whole if whole else 0.0
            if ratio.low > 1 and share > NOTABLE:
                label = f"{name}, {size}" if size else name
                calls = round(statistics.median(_calls(a, name, band) for a, _ in both))
                slower.append((more, CallCost(label, share, ratio, calls)))
    slower.sort(key=lambda pair: -pair[0])
    return [cost for _, cost in slower[:MOST_CALLS]]


def _calls(run: ArmRun, name: str, band: int) -> int:
    count = run.calls.get(name)
    return count.calls[band] if count else 0


def _spent(run: ArmRun, name: str, band: int) -> float:
    count = run.calls.get(name)
    return count.nanoseconds[band] / 1e9 if count else 0.0


def _seconds_a_call(run: ArmRun, name: str, band: int) -> float:
    return _spent(run, name, band) / max(_calls(run, name, band), 1)


def causes(here: Habitat, there: Habitat, ranks: int) -> list[Cause]:
    """The differences between an environment and the reference that can cost time.

    Those that usually cost most come first.
    """
    differences: list[Cause] = []
    own, usual = here.allows, there.allows
    if here.hosts > 1 and (here.hosts, here.rate) != (there.hosts, there.rate):
        differences.append(
            Cause(
                f"its ranks are on {here.hosts} hosts in turn, and what they send one another "
                f"passes links of {here.rate}",
                "a faster network, as another RATE in --env hosts:NxRATE shows, or fewer hosts",
                "MPI",
            )
        )
    if own.get("reading") and not usual.get("reading", 1):
        differences.append(
            Cause(
                "its ranks may not read each other's memory (process_vm_readv is refused), so an "
                "MPI copies long messages twice",
                "--profiles tuned, or --options '--cap-add SYS_PTRACE'",
                "MPI",
            )
        )
    needed = shared_memory(ranks)
    if ranks > 1 and own.get("shm", needed) < min(needed, usual.get("shm", needed)):
        differences.append(
            Cause(
                f"its /dev/shm has {bytes_text(own['shm'])}, and MPIs want about "
                f"{bytes_text(needed)} for {ranks} ranks",
                f"--profiles tuned, or --options '--shm-size {needed // 2**20}m'",
                "MPI",
            )
        )
    cpus = own.get("cpus", 0)
    if here.quota and here.quota < min(there.quota or cpus, cpus):
        differences.append(
            Cause(
                f"its cgroup may use the time of {here.quota:.3g} CPUs, and it has {cpus}",
                f"--options '--cpus {cpus}', or no limit",
            )
        )
    if 0 < cpus < usual.get("cpus", 0):
        differences.append(
            Cause(
                f"it may use {counted(cpus, 'CPU')}, and {there.arm} {usual['cpus']}",
                "no --cpuset-cpus, or one with all of them",
            )
        )
    for subject, part in LIBRARIES.items():
        one, other = here.libraries.get(subject), there.libraries.get(subject)
        if one and other and one != other:
            differences.append(
                Cause(
                    f"it has another {subject}: {one}, where {there.arm} has {other}",
                    f"the same {subject} in the image",
                    part,
                )
            )
    ours = {*LAUNCHERS, *(ON_HOSTS if here.hosts or there.hosts else ())}
    for name in sorted({*here.variables, *there.variables} - ours):
        one, other = (at.variables.get(name, "not set") for at in (here, there))
        if one != other:
            differences.append(
                Cause(
                    f"{name} is {one}, and in {there.arm} {other}",
                    f"the same in both, as by --options '--env {name}=...'",
                    "MPI" if name.startswith(OF_MPI) else "work",
                )
            )
    if own.get("placing") and not usual.get("placing", 1):
        differences.append(
            Cause(
                "it may not choose where its memory is (set_mempolicy is refused)",
                "--options '--cap-add SYS_NICE', as for docker run",
                "work",
            )
        )
    has_mpi = here.ranks or there.ranks or "MPI" in here.libraries | there.libraries
    return differences if has_mpi else [one for one in differences if one.part != "MPI"]
