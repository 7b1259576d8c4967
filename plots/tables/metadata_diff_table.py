"""What differs between the arms of a campaign besides the containers, and what is the same. Pure.

Arms are compared within an MPI. The data path has a table of its own (data_path.py), and nodes have
a map (figures/map.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.analysis.arm_order import arm_key
from experiments.analysis.metadata_diff import ALWAYS_DIFFERENT, flatten

_ELSEWHERE = ("datapath.", "topology.nodes")
_MOST = 2  # values of an arm that are spelt out

Launches = Sequence[Mapping[str, Any]]


def apart(launches: Launches) -> dict[str, dict[str, str]]:
    """{key: {arm: values}} of what was recorded and is not the same in every arm of some MPI."""
    seen = _seen(launches)
    arms = sorted({arm for _, arm in seen}, key=arm_key)
    keys = sorted({key for values in seen.values() for key in values})
    found = {}
    for key in keys:
        if key.startswith(_ELSEWHERE) or key.rsplit(".", 1)[-1] in ALWAYS_DIFFERENT:
            continue
        by_arm: dict[str, list[str]] = {arm: [] for arm in arms}
        for mpi in dict.fromkeys(mpi for mpi, _ in seen):
            here = {arm: seen[mpi, arm].get(key, []) for arm in arms if (mpi, arm) in seen}
            if len({frozenset(values) for values in here.values()}) > 1:
                for arm, values in here.items():
                    by_arm[arm] += values or ["not recorded"]
        if any(by_arm.values()):
            found[key] = {arm: _together(values) for arm, values in by_arm.items()}
    return found


def common(launches: Launches) -> dict[str, str]:
    """{key: value} of everything recorded that is no difference between arms."""
    differing = apart(launches)
    found: dict[str, list[str]] = {}
    for values in _seen(launches).values():
        for key, each in values.items():
            if key not in differing and not key.startswith(_ELSEWHERE):
                found.setdefault(key, []).extend(each)
    return {key: _together(values) for key, values in sorted(found.items())}


def _seen(launches: Launches) -> dict[tuple[str, str], dict[str, list[str]]]:
    """By MPI and arm: the distinct values under each dotted key."""
    seen: dict[tuple[str, str], dict[str, list[str]]] = {}
    for launch in launches:
        asked = launch["launch"]
        values = seen.setdefault((asked.get("mpi", ""), asked["arm"]), {})
        for key, value in flatten(_listed(launch["environment"])).items():
            each = values.setdefault(key, [])
            each += [] if value in each else [value]
    return seen


def _listed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with lists as a reader writes them."""
    return {
        key: _listed(value)
        if isinstance(value, Mapping)
        else ", ".join(map(str, value))
        if isinstance(value, list)
        else value
        for key, value in values.items()
    }


def _together(values: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(values))
    more = f" (and {len(distinct) - _MOST} more)" if len(distinct) > _MOST else ""
    return "; ".join(distinct[:_MOST]) + more
