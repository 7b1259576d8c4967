"""What may be the cause of a container's cost, in words: a lost data path, and all else.

Draws nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from experiments.analysis.campaign import Campaign
from experiments.analysis.container_steps import Family, family
from experiments.analysis.data_path import SHM_OF_ANOTHER_RANK, WORKS, DataPaths, Loss
from experiments.analysis.mpi_transport_log import NONE, NOT_TOLD, SHARED_MEMORY
from experiments.analysis.selection import rows
from experiments.model.arms import named
from experiments.model.quantities import bytes_text, ranks_text
from plots.layout.labels import LAYOUTS, arm_name, environment_name, mpi_name, ratio_and_interval

PLACE = (
    "Where the pages of a file are in memory makes calls of a microsecond up to 4 % faster or "
    "slower, in every launch alike"
)
"""Of the trial in docs/method.md."""


MOST = 3  # losses that a caption names one by one


def caveats(campaign: Campaign) -> list[str]:
    """Every sentence that this campaign earns, a lost data path first."""
    lost = short(campaign.data_paths.losses)
    return [*([lost] if lost else []), *beside_data_path(campaign)]


def beside_data_path(campaign: Campaign) -> Iterator[str]:
    """A sentence on different versions of Python, on copies of files, and on copies that stray."""
    beside = campaign.confounders
    if beside.interpreters:
        host_first = sorted(beside.interpreters.items(), reverse=True)
        named = ", ".join(f"{name} {version}" for name, version in host_first)
        yield f"The interpreters differ: Python: {named}."
    if beside.other_files:
        named = "; ".join(f"{name}: {reason}" for name, reason in beside.other_files.items())
        yield (
            f"Arms run from other copies of the image's files than Docker's containers ({named}). "
            f"{PLACE}."
        )
    if beside.own_files:
        named = "; ".join(f"{name}: {reason}" for name, reason in beside.own_files.items())
        yield (
            f"The host and its A/A pair run from one copy of their files ({named}). {PLACE}, which "
            "this noise floor does not hold."
        )
    for row in rows(beside.straying_copies):
        yield (
            "The control differs: a plain copy without MPI already takes "
            f"{ratio_and_interval(row)} times as long in {row.arm} at "
            f"{bytes_text(row.bytes)}, {ranks_text(row.ranks)}; {row.straying} of {row.copies} "
            "copies differ like this, and MPI cannot be the cause."
        )


def sentences(paths: DataPaths) -> tuple[str, ...]:
    """One for each MPI and each way in which arms differ from the host, the losses first."""
    grouped: dict[tuple[str, str], list[str]] = defaultdict(list)
    for loss in paths.losses:
        lost = f"{mpi_name(loss.mpi)} lost {_and(loss.ways)}"
        mended = remedy(loss)
        rest = f" ({_cause(loss)}): {effect(loss)}" + (f"; {mended}." if mended else ".")
        grouped[lost, rest].append(loss.arm)
    for other in paths.substitutions:
        taken = f"{mpi_name(other.mpi)} takes {other.here} for {other.way}"
        grouped[taken, f", and {other.on_host} on the host."].append(other.arm)
    for refusal in paths.refusals:
        kept = f"{mpi_name(refusal.mpi)} loses no single copy"
        why = "it copies large messages twice on the host too"
        grouped[kept, f" (process_vm_readv {refusal.outcome}): {why}."].append(refusal.arm)
    return tuple(f"{start} in {_arms(arms)}{end}" for (start, end), arms in grouped.items())


def short(losses: Sequence[Loss]) -> str:
    """All losses in one sentence for a caption; empty where nothing was lost."""
    lost: dict[tuple[str, str], list[str]] = {}
    by_way: dict[str, list[str]] = {}
    for loss in losses:
        lost.setdefault((mpi_name(loss.mpi), _and(loss.ways)), []).append(loss.arm)
        for way in loss.ways:
            by_way.setdefault(way, []).append(mpi_name(loss.mpi))
    clauses = [f"{mpi} lost {ways} in {_arms(arms)}" for (mpi, ways), arms in lost.items()]
    if len(losses) > MOST:
        clauses = [f"{_and(list(dict.fromkeys(mpis)))} lost {way}" for way, mpis in by_way.items()]
        clauses[-1] += ", each in some arms: see the data paths"
    return f"The data path differs from the host's: {'; '.join(clauses)}." if clauses else ""


def effect(loss: Loss) -> str:
    """What messages do instead."""
    if SHARED_MEMORY in loss.ways:
        return f"messages go by {loss.network}"
    by_network = f", or go by {loss.network}" if loss.network not in (NONE, NOT_TOLD) else ""
    return f"large messages are copied twice{by_network}"


def _cause(loss: Loss) -> str:
    """The trials that explain a loss, in the system's words."""
    reasons = []
    if loss.trial == SHM_OF_ANOTHER_RANK:
        reasons += [f"it takes its ranks to be on {loss.nodes} nodes"] if loss.nodes else []
        if loss.outcome == WORKS:
            return ", ".join([*reasons, "though they can share memory"])
        return ", ".join([*reasons, f"{loss.trial}: {loss.outcome or 'not tried'}"])
    reasons += [f"{loss.trial} {loss.outcome}"] if loss.trial else []
    if loss.switched_off:
        reasons.append("where MPICH would abort, so the launch switches single copy off")
    return ", ".join(reasons) or "no trial shows why"


def remedy(loss: Loss) -> str:
    """What gets the lost ways back; "" where no other arm of the campaign is a container."""
    what = "it" if len(loss.ways) == 1 else "them"
    if not loss.kept_in:
        return f"no other arm of this campaign gets {what} back" if loss.others else ""
    changes = _changes(loss)
    names = [
        f"the {level}{'s' * (len(values) > 1)} {_and(values)}" for level, values in changes.items()
    ]
    arms = [arm_name(arm) for arm in loss.kept_in]
    several = len(next(iter(changes.values()), arms)) > 1
    return f"{' with '.join(names) or _and(arms)} {'get' if several else 'gets'} {what} back"


def _changes(loss: Loss) -> dict[str, list[str]]:
    """Other profiles, else other layouts, else both, that keep the ways in the arm's environment.

    Returns:
        {"profile" or "layout": names}; empty where only other environments keep the ways.
    """
    own = named(loss.arm)
    near = [arm for arm in map(named, loss.kept_in) if arm.environment == own.environment]
    if profiles := [arm.profile for arm in near if arm.layout == own.layout]:
        return {"profile": profiles}
    if layouts := [LAYOUTS[arm.layout] for arm in near if arm.profile == own.profile]:
        return {"layout": layouts}
    if not near:
        return {}
    return {
        "profile": list(dict.fromkeys(arm.profile for arm in near)),
        "layout": list(dict.fromkeys(LAYOUTS[arm.layout] for arm in near)),
    }


def _arms(arms: Sequence[str]) -> str:
    """Arms by name; those that differ in their profile alone together."""
    grouped: dict[Family, list[str]] = {}
    for arm in arms:
        grouped.setdefault(family(arm), []).append(arm)
    return "; ".join(
        arm_name(same[0])
        if len(same) == 1
        else f"{environment_name(environment)}, "
        f"{_and([named(arm).profile for arm in same])}, {LAYOUTS[layout]}"
        for (environment, layout), same in grouped.items()
    )


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
