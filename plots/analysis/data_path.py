"""The way that data took in each arm: what a container lost of the host's, in words, and a table.

Knows what launches recorded, as plain values; draws nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.metadata_diff import flatten
from experiments.analysis.mpi_transport_log import (
    NETWORK,
    NONE,
    NOT_TOLD,
    SAID,
    SHARED_MEMORY,
    SINGLE_COPY,
)
from experiments.model.arms import HOST
from plots.analysis.privileges import capabilities, seccomp
from plots.layout.labels import (
    LAYOUTS,
    MPIS,
    arm_levels,
    arm_name,
    arm_place,
    bytes_text,
    environment_name,
    in_container,
    mpi_name,
)

Launches = Iterable[Mapping[str, Any]]
Path = Mapping[str, tuple[str, ...]]
"""What the launches of one MPI in one arm recorded: every distinct value under its dotted key."""
Paths = Mapping[tuple[str, str], Path]
"""By MPI and arm, in the order in which a report shows them."""

WORKS = "works"
MOST = 3  # losses that a caption tells one by one
HEAD = (
    "MPI",
    "arm",
    "shared memory",
    "single copy",
    "network",
    "process_vm_readv",
    "kcmp",
    "memfd of a neighbour",
    "/dev/shm of a neighbour",
    "capabilities",
    "seccomp",
    "namespaces of its own",
    "apart between ranks",
    "ptrace_scope",
    "size of /dev/shm",
    "CPUs",
    "nodes",
    "user",
    "the MPI's own words",
)


@dataclass(frozen=True)
class Loss:
    """What an MPI does in an arm otherwise than on the host.

    Attributes:
        ways: of the host's that are lost, such as ("single copy",).
        why: what was tried and refused.
        effect: what its messages do instead.
        back: what gets the ways back in this campaign, or that nothing does; empty without others.
    """

    mpi: str
    arm: str
    ways: tuple[str, ...]
    why: str
    effect: str
    back: str


def sentences(launches: Launches) -> tuple[str, ...]:
    """One for each MPI and each way in which arms differ from the host, the losses first."""
    paths = by_arm(launches)
    grouped: dict[tuple[str, ...], list[str]] = {}
    for loss in losses(paths):
        lost = f"{mpi_name(loss.mpi)} lost {_and(loss.ways)}"
        key = (lost, f"({loss.why}): {loss.effect}" + (f"; {loss.back}." if loss.back else "."))
        grouped.setdefault(key, []).append(loss.arm)
    told = [f"{lost} in {_arms(arms)} {rest}" for (lost, rest), arms in grouped.items()]
    return (*told, *_changes(paths), *_harmless(paths))


def short(launches: Launches) -> str:
    """All losses in one sentence for a caption; empty where nothing was lost."""
    found = losses(by_arm(launches))
    lost: dict[tuple[str, str], list[str]] = {}
    by_way: dict[str, list[str]] = {}
    for loss in found:
        lost.setdefault((mpi_name(loss.mpi), _and(loss.ways)), []).append(loss.arm)
        for way in loss.ways:
            by_way.setdefault(way, []).append(mpi_name(loss.mpi))
    told = [f"{mpi} lost {ways} in {_arms(arms)}" for (mpi, ways), arms in lost.items()]
    if len(found) > MOST:
        told = [f"{_and(list(dict.fromkeys(mpis)))} lost {way}" for way, mpis in by_way.items()]
        told[-1] += ", each in some arms: see the data paths"
    return f"The data path differs from the host's: {'; '.join(told)}." if told else ""


def table(launches: Launches) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(HEAD, one row for each MPI and arm): what it chose, what was tried, what was allowed."""
    paths = by_arm(launches)
    return HEAD, [
        _row(mpi, arm, path, paths.get((mpi, HOST), {})) for (mpi, arm), path in paths.items()
    ]


def by_arm(launches: Launches) -> Paths:
    """What was recorded of the data path, by MPI and arm."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for launch in launches:
        path = launch["environment"].get("datapath")
        if path:
            asked = launch["launch"]
            values = found.setdefault((asked.get("mpi", ""), asked["arm"]), {})
            for key, value in flatten(path).items():
                seen = values.setdefault(key, [])
                seen += [] if value in seen else [value]
    order = [*MPIS]
    return {
        key: {name: tuple(seen) for name, seen in found[key].items()}
        for key in sorted(
            found,
            key=lambda k: (
                order.index(k[0]) if k[0] in order else -1,
                k[1] != HOST,
                arm_place(k[1]),
            ),
        )
    }


def losses(paths: Paths) -> list[Loss]:
    """Ways that an MPI has on the host and not in an arm."""
    found = []
    for (mpi, arm), path, host in _compared(paths):
        ways = tuple(
            way
            for way in (SHARED_MEMORY, SINGLE_COPY)
            if _has(host, way) and _chosen(path, way) == NONE
        )
        if ways:
            network = _chosen(path, NETWORK)
            effect = "large messages are copied twice"
            if SHARED_MEMORY in ways:
                effect = f"messages go by {network}"
            elif _has(path, NETWORK):
                effect += f", or go by {network}"
            found.append(
                Loss(
                    mpi,
                    arm,
                    ways,
                    _why(mpi, ways, path, host),
                    effect,
                    _back(mpi, arm, ways, paths),
                )
            )
    return found


def _changes(paths: Paths) -> Iterable[str]:
    """Ways that an MPI has in an arm too, by another means."""
    grouped: dict[tuple[str, str, str, str], list[str]] = {}
    for (mpi, arm), path, host in _compared(paths):
        for way in (SHARED_MEMORY, SINGLE_COPY, NETWORK):
            here, there = _chosen(path, way), _chosen(host, way)
            if _has(host, way) and _has(path, way) and here != there:
                grouped.setdefault((mpi, way, here, there), []).append(arm)
    for (mpi, way, here, there), arms in grouped.items():
        yield f"{mpi_name(mpi)} takes {here} for {way} in {_arms(arms)}, and {there} on the host."


def _harmless(paths: Paths) -> Iterable[str]:
    """Refusals that took nothing from an MPI, since it does not copy at once on the host either."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for (mpi, arm), path, host in _compared(paths):
        if _chosen(host, SINGLE_COPY) != NONE or not _has(path, SHARED_MEMORY):
            continue
        if _text(host, "cma") == WORKS and _text(path, "cma") not in (WORKS, ""):
            grouped.setdefault((mpi, _text(path, "cma")), []).append(arm)
    for (mpi, refused), arms in grouped.items():
        yield (
            f"{mpi_name(mpi)} loses no single copy in {_arms(arms)} (process_vm_readv {refused}): "
            "it copies large messages twice on the host too."
        )


def _compared(paths: Paths) -> Iterable[tuple[tuple[str, str], Path, Path]]:
    """(MPI and arm, its path, the host's) of every container arm that has the host beside it."""
    for (mpi, arm), path in paths.items():
        host = paths.get((mpi, HOST))
        if host is not None and in_container(arm):
            yield (mpi, arm), path, host


def _why(mpi: str, ways: Sequence[str], path: Path, host: Path) -> str:
    """The trials that explain a loss, in the system's words."""
    reasons = []
    if SHARED_MEMORY in ways:
        nodes = _text(path, "told.nodes")
        if nodes not in ("", _text(host, "told.nodes")):
            reasons.append(f"it takes its ranks to be on {nodes} nodes")
        shm = _text(path, "shm")
        reasons.append(
            "though they can share memory"
            if shm == WORKS
            else f"/dev/shm of another rank: {shm or 'not tried'}"
        )
        return ", ".join(reasons)
    trials = (("kcmp", "kcmp"), ("process_vm_readv", "cma"))
    for name, key in trials if mpi == "openmpi" else trials[::-1]:  # the one that it asks first
        if _text(path, key) not in (WORKS, ""):
            reasons.append(f"{name} {_text(path, key)}")
            break
    if _text(path, "told.MPIR_CVAR_CH4_CMA_ENABLE") == "0":
        reasons.append("where MPICH would end, so it is told to do without")
    return ", ".join(reasons) or "no trial shows why"


def _back(mpi: str, arm: str, ways: Sequence[str], paths: Paths) -> str:
    """What gets the lost ways back: another profile, else another layout, else another arm."""
    others = [other for m, other in paths if m == mpi and other != arm and in_container(other)]
    able = [other for other in others if all(_has(paths[mpi, other], way) for way in ways)]
    what = "it" if len(ways) == 1 else "them"
    if not able:
        return f"no other arm of this campaign gets {what} back" if others else ""
    environment, profile, layout = arm_levels(arm)
    levels = [arm_levels(other) for other in able]
    near = [(p, k) for e, p, k in levels if e == environment]
    near = (
        [(p, k) for p, k in near if k == layout]
        or [(p, k) for p, k in near if p == profile]
        or near
    )
    profiles = list(dict.fromkeys(p for p, _ in near if p != profile))
    layouts = list(dict.fromkeys(LAYOUTS[k] for _, k in near if k != layout))
    said = [
        f"the {level}{'s' * (len(names) > 1)} {_and(names)}"
        for level, names in (("profile", profiles), ("layout", layouts))
        if names
    ]
    if not said:
        said = [_and([arm_name(other) for other in able])]
    several = len(profiles or layouts or able) > 1
    return f"{' with '.join(said)} {'get' if several else 'gets'} {what} back"


def _row(mpi: str, arm: str, path: Path, host: Path) -> tuple[str, ...]:
    size = _text(path, "shm_bytes")
    uid = _text(path, "uid")
    scope = _text(path, "ptrace_scope")
    return (
        mpi_name(mpi),
        arm_name(arm),
        *(_chosen(path, way) for way in (SHARED_MEMORY, SINGLE_COPY, NETWORK)),
        *(_text(path, tried) or NOT_TOLD for tried in ("cma", "kcmp", "memfd", "shm")),
        "; ".join(map(capabilities, path.get("capabilities_effective", ()))) or NOT_TOLD,
        "; ".join(map(seccomp, path.get("seccomp", ()))) or NOT_TOLD,
        _own_namespaces(path, host),
        _text(path, "namespaces_apart") or NOT_TOLD,
        "no Yama" if scope == "not found" else scope or NOT_TOLD,
        bytes_text(int(size)) if size.isdigit() else size or NOT_TOLD,
        _text(path, "cpus_allowed") or NOT_TOLD,
        _text(path, "mems_allowed") or NOT_TOLD,
        "root" if uid == "0" else uid or NOT_TOLD,
        _text(path, f"chosen.{SAID}") or NOT_TOLD,
    )


def _own_namespaces(path: Path, host: Path) -> str:
    """The namespaces that none of its launches shares with the host."""
    names = [key for key in path if key.startswith("namespaces.")]
    if not names or not host:
        return NOT_TOLD
    own = [key.partition(".")[2] for key in names if not set(path[key]) & set(host.get(key, ()))]
    return ", ".join(own) or NONE


def _chosen(path: Path, way: str) -> str:
    """A way as chosen; of a launch that asked nothing, only what was tried is known."""
    told = _text(path, f"chosen.{way}")
    if told or way != SINGLE_COPY:
        return told or NOT_TOLD
    return "CMA" if _text(path, "cma") == WORKS else NONE


def _has(path: Path, way: str) -> bool:
    return _chosen(path, way) not in (NONE, NOT_TOLD)


def _text(path: Path, key: str) -> str:
    return "; ".join(path.get(key, ()))


def _arms(arms: Sequence[str]) -> str:
    """Arms by name; those that differ in their profile alone together."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for arm in arms:
        environment, _, layout = arm_levels(arm)
        grouped.setdefault((environment, layout), []).append(arm)
    return "; ".join(
        arm_name(same[0])
        if len(same) == 1
        else f"{environment_name(environment)}, "
        f"{_and([arm_levels(arm)[1] for arm in same])}, {LAYOUTS[layout]}"
        for (environment, layout), same in grouped.items()
    )


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
