"""What differs between the arms of a campaign besides the containers, and what is the same. Pure.

Arms are compared within an MPI. The data path has a table of its own (data_path.py), and nodes have
a map (figures/placement_map.py).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from experiments.analysis.metadata_diff import ALWAYS_DIFFERENT, Recorded, distinct, flatten
from experiments.model.arms import arm_key
from experiments.results.result import Result

_ELSEWHERE = ("datapath.", "topology.nodes")
_MOST = 2  # values of an arm that are spelt out

Launches = Sequence[Result]


def by_arm(launches: Launches) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """{key: {arm: values}} of what is not the same in every arm of some MPI, with the values of
    such MPIs; {key: values} of everything else that was recorded."""
    seen = _seen(launches)
    arms = sorted({arm for _, arm in seen}, key=arm_key)
    apart, common = dict[str, dict[str, str]](), dict[str, str]()
    for key in sorted({key for values in seen.values() for key in values}):
        here: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for (mpi, arm), values in seen.items():
            here[mpi][arm] = values.get(key, [])
        differing = [
            recorded
            for recorded in here.values()
            if len(set(map(frozenset, recorded.values()))) > 1
        ]
        if differing and key.rsplit(".", 1)[-1] not in ALWAYS_DIFFERENT:
            apart[key] = {
                arm: _together(
                    [recorded[arm] or ["not recorded"] for recorded in differing if arm in recorded]
                )
                for arm in arms
            }
        else:
            common[key] = _together(values.get(key, []) for values in seen.values())
    return apart, common


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
    every = ((launch, flatten(listed(launch.facts.recorded))) for launch in launches)
    return distinct(
        (launch, {key: value for key, value in values.items() if not key.startswith(_ELSEWHERE)})
        for launch, values in every
    )


def _together(every: Iterable[Sequence[str]]) -> str:
    values = list(dict.fromkeys(chain.from_iterable(every)))
    more = f" (and {len(values) - _MOST} more)" if len(values) > _MOST else ""
    return "; ".join(values[:_MOST]) + more
