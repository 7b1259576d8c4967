"""What differs between the arms of a campaign besides the containers, and what is the same. Pure.

Arms are compared within an MPI. The data path has a table of its own (data_path.py), and nodes have
a map (figures/map.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.analysis.metadata_diff import ALWAYS_DIFFERENT, Recorded, distinct, flatten
from experiments.model.arms import arm_key

_ELSEWHERE = ("datapath.", "topology.nodes")
_MOST = 2  # values of an arm that are spelt out

Launches = Sequence[Mapping[str, Any]]


def apart(launches: Launches) -> dict[str, dict[str, str]]:
    """{key: {arm: values}} of what was recorded and is not the same in every arm of some MPI."""
    seen = _seen(launches)
    arms = sorted({arm for _, arm in seen}, key=arm_key)
    found: dict[str, dict[str, list[str]]] = {}
    for mpi in dict.fromkeys(mpi for mpi, _ in seen):
        here = {arm: seen[mpi, arm] for arm in arms if (mpi, arm) in seen}
        for key in _differing(here):
            by_arm = found.setdefault(key, {arm: [] for arm in arms})
            for arm, values in here.items():
                by_arm[arm] += values.get(key, ["not recorded"])
    return {
        key: {arm: _together(values) for arm, values in by_arm.items()}
        for key, by_arm in sorted(found.items())
    }


def common(launches: Launches) -> dict[str, str]:
    """{key: value} of everything recorded that is no difference between arms."""
    differing = apart(launches)
    found: dict[str, list[str]] = {}
    for values in _seen(launches).values():
        for key, each in values.items():
            if key not in differing:
                found.setdefault(key, []).extend(each)
    return {key: _together(values) for key, values in sorted(found.items())}


def listed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables with their lists as a reader writes them: "2, 4, 8"."""
    return {
        key: listed(value)
        if isinstance(value, Mapping)
        else ", ".join(map(str, value))
        if isinstance(value, list)
        else value
        for key, value in values.items()
    }


def _seen(launches: Launches) -> dict[tuple[str, str], Recorded]:
    """What was recorded by MPI and arm, without the keys that have a place elsewhere."""
    every = ((launch, flatten(listed(launch["environment"]))) for launch in launches)
    return distinct(
        (launch, {key: value for key, value in values.items() if not key.startswith(_ELSEWHERE)})
        for launch, values in every
    )


def _differing(by_arm: Mapping[str, Recorded]) -> set[str]:
    """The keys that have not the same values in every arm."""
    return {
        key
        for key in {key for recorded in by_arm.values() for key in recorded}
        if key.rsplit(".", 1)[-1] not in ALWAYS_DIFFERENT
        and len({frozenset(recorded.get(key, ())) for recorded in by_arm.values()}) > 1
    }


def _together(values: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(values))
    more = f" (and {len(distinct) - _MOST} more)" if len(distinct) > _MOST else ""
    return "; ".join(distinct[:_MOST]) + more
