"""The data path in each arm: what an MPI lost of the host's ways, replaced, or never used. Pure.

Knows what launches recorded, as plain values.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.analysis.metadata_diff import distinct, flatten
from experiments.analysis.mpi_transport_log import (
    NETWORK,
    NONE,
    NOT_TOLD,
    SHARED_MEMORY,
    SINGLE_COPY,
)
from experiments.model.arms import HOST, arm_key, in_container
from experiments.model.environment import MPIS
from experiments.results.result import Result

Launches = Iterable[Result]
Path = Mapping[str, tuple[str, ...]]
"""What the launches of one MPI in one arm recorded: every distinct value under its dotted key."""
Paths = Mapping[tuple[str, str], Path]
"""By MPI and arm, in the order in which a report shows them."""

WORKS = "works"
SHM_OF_ANOTHER_RANK = "/dev/shm of another rank"
_TRIALS = {"kcmp": "kcmp", "process_vm_readv": "cma"}
"""What single copy needs, and the key under which its trial is recorded."""


@dataclass(frozen=True)
class Loss:
    """Ways that an MPI has on the host and lacks in an arm.

    Attributes:
        ways: the lost ones, such as ("single copy",).
        network: what it chose between nodes instead; NONE or NOT_TOLD where it chose nothing.
        trial, outcome: what was tried in that arm and explains the loss, and the system's answer.
        nodes: how many nodes the MPI counts, where it counts others than on the host.
        switched_off: whether the arm's environment turns single copy off.
        kept_in: the other container arms in which the MPI has all of the lost ways.
        others: whether the MPI ran in other container arms at all.
    """

    mpi: str
    arm: str
    ways: tuple[str, ...]
    network: str = NONE
    trial: str = ""
    outcome: str = ""
    nodes: str = ""
    switched_off: bool = False
    kept_in: tuple[str, ...] = ()
    others: bool = False


@dataclass(frozen=True)
class Substitution:
    """A way that an MPI has in an arm as on the host, by another means."""

    mpi: str
    arm: str
    way: str
    here: str
    on_host: str


@dataclass(frozen=True)
class HarmlessRefusal:
    """A refused single copy in an arm of an MPI that does not copy at once on the host either."""

    mpi: str
    arm: str
    outcome: str


@dataclass(frozen=True)
class DataPaths:
    """How the arms of a campaign differ from the host."""

    losses: tuple[Loss, ...] = ()
    substitutions: tuple[Substitution, ...] = ()
    refusals: tuple[HarmlessRefusal, ...] = ()


def compare(launches: Launches) -> DataPaths:
    """Every difference between the host and the container arms beside it."""
    paths = by_arm(launches)
    return DataPaths(tuple(_losses(paths)), tuple(_substitutions(paths)), tuple(_refusals(paths)))


def by_arm(launches: Launches) -> Paths:
    """What was recorded of the data path, by MPI and arm."""
    recorded = distinct(
        (launch, flatten(path)) for launch in launches if (path := launch.facts.datapath)
    )

    def order(key: tuple[str, str]) -> tuple[Any, ...]:
        mpi, arm = key
        return MPIS.index(mpi) if mpi in MPIS else -1, arm != HOST, arm_key(arm)

    return {
        key: {name: tuple(seen) for name, seen in recorded[key].items()}
        for key in sorted(recorded, key=order)
    }


def chosen(path: Path, way: str) -> str:
    """A way as chosen; of a launch that asked nothing, only what was tried is known."""
    value = read(path, f"chosen.{way}")
    if value or way != SINGLE_COPY:
        return value or NOT_TOLD
    return "CMA" if read(path, "cma") == WORKS else NONE


def read(path: Path, key: str) -> str:
    """Every distinct value of a key in one text; "" where there is none."""
    return "; ".join(path.get(key, ()))


def _losses(paths: Paths) -> Iterator[Loss]:
    for (mpi, arm), path, host in _compared(paths):
        ways = tuple(
            way
            for way in (SHARED_MEMORY, SINGLE_COPY)
            if _has(host, way) and chosen(path, way) == NONE
        )
        if not ways:
            continue
        others = [other for m, other in paths if m == mpi and other != arm and in_container(other)]
        trial, outcome = _explanation(mpi, ways, path)
        nodes = read(path, "told.nodes")
        yield Loss(
            mpi,
            arm,
            ways,
            chosen(path, NETWORK),
            trial,
            outcome,
            nodes if nodes != read(host, "told.nodes") else "",
            read(path, "told.MPIR_CVAR_CH4_CMA_ENABLE") == "0",
            tuple(other for other in others if all(_has(paths[mpi, other], way) for way in ways)),
            bool(others),
        )


def _explanation(mpi: str, ways: tuple[str, ...], path: Path) -> tuple[str, str]:
    """The trial that explains a loss, and its outcome; ("", "") where none does."""
    if SHARED_MEMORY in ways:
        return SHM_OF_ANOTHER_RANK, read(path, "shm")
    trials = list(_TRIALS.items())
    for trial, key in trials if mpi == "openmpi" else trials[::-1]:  # the one that it asks first
        if read(path, key) not in (WORKS, ""):
            return trial, read(path, key)
    return "", ""


def _substitutions(paths: Paths) -> Iterator[Substitution]:
    for (mpi, arm), path, host in _compared(paths):
        for way in (SHARED_MEMORY, SINGLE_COPY, NETWORK):
            here, on_host = chosen(path, way), chosen(host, way)
            if _has(host, way) and _has(path, way) and here != on_host:
                yield Substitution(mpi, arm, way, here, on_host)


def _refusals(paths: Paths) -> Iterator[HarmlessRefusal]:
    for (mpi, arm), path, host in _compared(paths):
        if chosen(host, SINGLE_COPY) != NONE or not _has(path, SHARED_MEMORY):
            continue
        if read(host, "cma") == WORKS and read(path, "cma") not in (WORKS, ""):
            yield HarmlessRefusal(mpi, arm, read(path, "cma"))


def _compared(paths: Paths) -> Iterator[tuple[tuple[str, str], Path, Path]]:
    """(MPI and arm, its path, the host's) of every container arm that has the host beside it."""
    for (mpi, arm), path in paths.items():
        host = paths.get((mpi, HOST))
        if host is not None and in_container(arm):
            yield (mpi, arm), path, host


def _has(path: Path, way: str) -> bool:
    return chosen(path, way) not in (NONE, NOT_TOLD)
