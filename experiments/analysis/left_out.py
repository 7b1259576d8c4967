"""What contenders left out or did wrong where MPIs are the arms: one sentence each. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from experiments.model.contender_names import CALLS, MPI_ITSELF

Call = tuple[str, str, str, str]
"""The contender, the form and the operation, and what became of them."""


def notes(launches: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Every sentence that these launches earn.

    Args:
        launches: as results.read_launch() gives them.
    """
    wrong: dict[Call, set[int]] = defaultdict(set)
    failed: dict[Call, set[int]] = defaultdict(set)
    for launch in launches:
        asked = launch.get("launch", {})
        for cell in launch["cells"]:
            if "wrong" in cell:
                call = _call(asked["arm"], cell, "left wrong data, not counted")
                wrong[call].add(cell["bytes"])
        for each in asked.get("without", ()):
            where = f"{asked['arm']}, {asked['ranks']} ranks"
            call = _call(where, each, f"left out once it failed: {each['why']}")
            failed[call].add(-1 if each["bytes"] is None else each["bytes"])
    for (who, form, operation, outcome), sizes in [*sorted(wrong.items()), *sorted(failed.items())]:
        sized = f"{', '.join(f'{size:,}' for size in sorted(sizes))} bytes"
        what = "any size" if -1 in sizes else sized
        yield f"{who}: {form} {CALLS[operation]} of {what} {outcome}"


def _call(where: str, cell: Mapping[str, Any], outcome: str) -> Call:
    name = cell["transport"]
    who = where if name == MPI_ITSELF else f"{name} beside {where}"
    return who, cell["form"], cell["operation"], outcome
