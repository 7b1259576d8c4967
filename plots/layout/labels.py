"""Names and words on figures and in tables. Knows no drawing.

experiments/model/quantities.py formats numbers.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.analysis.container_steps import CONTAINER, FILES, RULES
from experiments.analysis.ratios import LEAST_CELLS, Floors
from experiments.analysis.reading import OVER_PRIVATE
from experiments.analysis.selection import emulated, in_order, places, rows
from experiments.analysis.statistics import CONFIDENCE, TOLERATED
from experiments.environments import runtime
from experiments.model.arms import TWIN, named
from experiments.model.contender_names import CALLS
from experiments.model.environment import EnvironmentId
from experiments.model.lower_bound import BARRIER
from experiments.model.quantities import (
    NOTHING,
    bytes_text,
    counted,
    interval_text,
    percent_text,
    ranks_text,
    ratio_text,
)
from experiments.model.workloads import WORKLOADS
from experiments.results import recorded

EMULATED = (
    "Emulated HBM: ordinary memory in its place. Shows that the path works, not how fast HBM is."
)

GLOSSARY = Path(__file__).parents[1] / "html" / "templates" / "glossary.toml"

OPERATIONS = {name: call for name, call in CALLS.items() if name != BARRIER} | {
    name: workload.title for name, workload in WORKLOADS.items()
}
"""Name in the code, and as MPI spells it or texts name it, in the order of figures."""

MPIS = {"openmpi": "Open MPI", "mpich": "MPICH", "impi": "Intel MPI"}
"""Name in the code and as its makers spell it, in the order in which figures show them."""

LAYOUTS = {
    "one": "one container",
    "per-rank": "a container per rank",
    "isolated": "isolated containers",
}
STEPS = {
    FILES: "the image's Python and libc in place of the host's, without a container",
    CONTAINER: "the same files in namespaces and a cgroup, with the rules of this profile, which "
    "has the fewest in this campaign",
    RULES: "the further rules of this profile: seccomp, capabilities, the size of /dev/shm",
}
"""Each step, and what it changes."""
_ARMS = {
    TWIN: "host again",
    "imb": "IMB (in C)",
    "threads": "Python threads",
    "multiprocessing": "multiprocessing",
}

_KINDS = {"regular": "regular (DDR)", "hbw": "hbw (HBM)"}
_TRANSPORTS = {
    "direct": "direct (shared memory)",
    "hierarchical": "hierarchical (direct, MPI between hosts)",
    "mpi": "mpi (its buffer calls)",
    "pickle": "pickle (its object calls)",
    "objects": "objects (hbmcomm's object calls)",
    "gloo": "gloo (torch over TCP)",
    "torch": "torch (its backend hbm)",
    "imb": "IMB (in C)",
    "threads": "Python threads",
    "shared_memory": "processes: shared memory",
    "queues": "processes: queues",
    "daso": "DASO",
    "blocking": "Allreduce of hbmcomm each batch",
    "mpi-blocking": "Allreduce of the MPI each batch",
    "alone": "no communication",
}


def glossary() -> dict[str, str]:
    """{word: meaning} of the words that pages and report use in a sense of their own, in the order
    in which they build on each other."""
    words: dict[str, str] = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))
    return words


def operation_name(operation: str) -> str:
    """As MPI spells it."""
    return OPERATIONS.get(operation, operation)


def by_operation(column: Any) -> Any:
    """Key of sort_values(): operations in the order of figures, all else as it is."""
    return places(column, OPERATIONS) if column.name == "operation" else column


def kind_name(kind: str, emulated: bool) -> str:
    """memkind's spelling with its meaning."""
    return f"{kind} (emulated HBM)" if emulated else _KINDS.get(kind, kind)


def mpi_name(mpi: str) -> str:
    """As its makers spell it."""
    return MPIS.get(mpi, mpi)


def by_mpi(frame: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """(what ends names, what ends titles, its rows) of each MPI: "-mpich", ", MPICH"; "" of one."""
    mpis = in_order(frame["mpi"], MPIS)
    several = len(mpis) > 1
    return [
        (f"-{mpi}" * several, f", {mpi_name(mpi)}" * several, frame[frame["mpi"] == mpi])
        for mpi in mpis
    ]


def arm_name(arm: str) -> str:
    """ "Docker, tuned, a container per rank"."""
    parsed = named(arm)
    environment = environment_name(parsed.environment)
    if parsed.profile:
        return f"{environment}, {parsed.profile}, {LAYOUTS[parsed.layout]}"
    return environment if arm == parsed.environment.in_names else _ARMS.get(arm, arm)


def environment_name(environment: EnvironmentId) -> str:
    """As its makers spell it, or what runs in an emulated machine: "Docker in emulated gh200"."""
    label = runtime.of(environment).label
    if environment.is_emulated:
        engine = f"{label} in " if environment.has_engine else ""
        return f"{engine}emulated {environment.machine}"
    return str(environment) if environment.place else label


def short_arm(arm: str) -> str:
    """An arm's name without the emulated machine's, where only that one is spoken of."""
    parsed = named(arm)
    if not parsed.environment.is_emulated:
        return arm
    return "-".join(filter(None, (parsed.environment.kind, parsed.profile, parsed.layout)))


def transport_name(transport: str) -> str:
    """Our name with its meaning."""
    own = transport.removesuffix(OVER_PRIVATE)
    name = _TRANSPORTS.get(own, own)
    return name if own == transport else f"{name} over private arrays"


def ratio_and_interval(cell: Any) -> str:
    """ "1.04 (95 % interval 0.98 to 1.10)" of its ratio, low and high; or "1.04 (no interval)"."""
    interval = interval_text(cell.low, cell.high)
    known = "no interval" if interval == NOTHING else f"95 % interval {interval}"
    return f"{ratio_text(cell.ratio)} ({known})"


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "arm": arm_name,
    "mpi": mpi_name,
    "operation": operation_name,
    "ranks": ranks_text,
    "bytes": bytes_text,
}


def in_words(cell: Any, *factors: str) -> str:
    """ "Bcast, direct, 64 KiB": a row's levels of these factors."""
    return ", ".join(_WORDS.get(factor, str)(getattr(cell, factor)) for factor in factors)


def ratios_in_words(frame: pd.DataFrame, *factors: str) -> str:
    """A sentence for each row: its levels of these factors, its ratio and interval."""
    every = [f"{in_words(cell, *factors)}: {ratio_and_interval(cell)}." for cell in rows(frame)]
    return " ".join(every)


def setting(frame: pd.DataFrame) -> str:
    """What all rows have in common, in words: "Open MPI, ranks packed, warm cache"."""
    mpis = set(frame["mpi"]) if "mpi" in frame else set()
    parts = [mpi_name(str(mpi)) for mpi in mpis if len(mpis) == 1]
    for column, form in (
        ("binding", "ranks {}"),
        ("locality", "{} memory"),
        ("dtype", "{}"),
        ("cadence", "{}"),
        ("cache", "{} cache"),
    ):
        values = sorted(set(frame[column].astype(str))) if column in frame else []
        if len(values) == 1:
            parts.append(form.format(values[0]))
    return ", ".join(parts)


def alerts(frame: pd.DataFrame) -> list[str]:
    """What a reader of these rows must not overlook about the machine and its memory."""
    machine = recorded.meaning(frame.get(recorded.COLUMN, ()))
    return [alert for alert in (machine, EMULATED if emulated(frame) else "") if alert]


def floor_text(floors: Floors) -> str:
    """ "Noise floor 2.2 % below 4 KiB (18 A/A cells: of 85 % of null cells), ...", by band.

    The share is named where the band has too few A/A cells for TOLERATED.
    """
    frame = floors.frame()
    parts = []
    for row in rows(frame.drop_duplicates(["band", "floor", "cells"])):
        own = frame[frame["band"] == row.band]["floor"].nunique() > 1
        where = f"{mpi_name(row.mpi)} {row.band}" if own else row.band
        if row.cells < LEAST_CELLS:
            parts.append(f"unknown {where} ({counted(row.cells, 'A/A cell')} of {LEAST_CELLS})")
        elif row.share < TOLERATED:
            held = f"{counted(row.cells, 'A/A cell')}, so of {100 * row.share:.0f} % of null cells"
            parts.append(f"{percent_text(row.floor)} {where} ({held})")
        else:
            parts.append(f"{percent_text(row.floor)} {where}")
    if not parts:
        return "The noise floor is unknown: no A/A pair."
    return (
        f"Noise floor, of {100 * TOLERATED:.0f} % of null cells with {100 * CONFIDENCE:.0f} % "
        f"confidence: {'; '.join(parts)}."
    )
