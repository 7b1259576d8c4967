"""One sentence per question: what may be claimed, and what may not. Draws nothing.

An effect is claimed only where its whole interval lies beyond the noise floor of the campaign.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.external.imb import DIFFERENCES
from experiments.statistics import CLAIM_BLOCKS
from plots import cost, whereabouts
from plots.findings import (
    BASELINE,
    OURS,
    Findings,
    absent_containers,
    emulated,
    in_order,
    rows,
    usual,
)
from plots.labels import (
    OPERATIONS,
    USERLAND,
    arm_name,
    bytes_text,
    interval_text,
    operation_name,
    p_text,
    percent_text,
    ranks_text,
    ratio_text,
)
from plots.style import TRANSPORTS

NO_CLAIM = "no effect above the noise floor can be claimed"


@dataclass(frozen=True)
class Answer:
    """A question, one sentence (or two) that answers it, and what stands behind it.

    Attributes:
        points: a sentence each.
    """

    question: str
    sentence: str
    grid: cost.Grid | None = None
    points: tuple[str, ...] = ()


def answers(found: Findings) -> list[Answer]:
    """The campaign's answers, in the order in which the paper asks; what has none comes last.

    On an emulated machine no question about time is asked, only where ranks and pages were.
    """
    where = _where(found)
    if found.machine:
        return [*where, Answer("How fast is it?", _no_time(found)), *_missing(found)]
    asked = [Answer("How much faster are collectives in high-bandwidth memory?", _memory(found))]
    asked += [
        Answer(f"How much slower than {OURS} is {transport}?", _transport(found, transport))
        for transport in in_order(found.transports.get("transport", []), TRANSPORTS)
    ]
    if OURS in found.unmeasured:
        told = f"Not measured. {OURS}: {found.unmeasured[OURS]}"
        asked.append(Answer(f"How fast is {OURS}?", told))
    asked += [
        Answer(question, _place(found, factor, done))
        for factor, question, done in (
            ("binding", "What does it cost to spread ranks over nodes?", "spread over all nodes"),
            ("locality", "What does a distant buffer cost?", "with buffers on another node"),
        )
        if _asked(found, factor)
    ]
    asked += [*where, *_containers(found), *_python(found)]
    return sorted(asked, key=lambda each: each.sentence.startswith("Not measured"))


def _where(found: Findings) -> list[Answer]:
    """Where ranks and pages were, of machines on which that is a question."""
    asked = [
        place
        for place in found.places
        if found.machine or sum(node.total_bytes > 0 for node in place.nodes) > 1
    ]
    if not asked:
        return []
    pages = [each for place in asked for panel in place.panels for each in panel.pages]
    return [
        Answer(
            "Where was every rank, and where was every page?",
            _as_asked([each.as_asked for each in pages]),
            points=tuple(whereabouts.answer(place) for place in asked),
        )
    ]


def _as_asked(shares: Sequence[float | None]) -> str:
    """Of each rank in each kind of memory; None is one of whom no page is told."""
    if not shares:
        return "Not measured. No launch had buffers in a kind of memory."
    pairs = f"{len(shares)} pairs of a rank and a kind of memory"
    untold = shares.count(None)
    strays = sum(share != 1 for share in shares) - untold
    silent = f" Of {untold} of {pairs} no page is told." if untold else ""
    if strays:
        return f"Not always where asked: of {pairs}, {strays} had pages elsewhere.{silent}"
    if untold == len(shares):
        return "Not measured. The results tell of no page."
    if untold:
        return f"Every page that is told of was on the nodes asked for.{silent}"
    return "Every page of every rank was on the nodes asked for, in every kind and launch."


def _no_time(found: Findings) -> str:
    return (
        f"Not answered, and not to be answered here. {found.machine} QEMU shows nodes, distances "
        "and bandwidths as the machine's description has them, and no node is faster than another; "
        "ratios of such times say nothing about high-bandwidth memory or containers."
    )


def _missing(found: Findings) -> list[Answer]:
    """What was asked for and could not be had."""
    return [
        Answer(f"What of {level}?", f"Not measured. {level}: {why}")
        for level, why in found.unmeasured.items()
    ]


def beyond(frame: pd.DataFrame, floor: float) -> "pd.Series[bool]":
    """Rows whose whole interval lies above 1 + floor or below 1 - floor.

    False for all without a noise floor, and for a row without an interval.
    """
    if not math.isfinite(floor):
        return pd.Series(False, index=frame.index)
    return (frame["low"] > 1 + floor) | (frame["high"] < 1 - floor)


def _memory(found: Findings) -> str:
    frame = found.speedups
    if frame.empty:
        containers = absent_containers(found.unmeasured)
        reasons = [f"{k}: {v}" for k, v in found.unmeasured.items() if k not in containers]
        return "Not measured. " + ("; ".join(reasons) or f"Only {BASELINE} memory was asked for.")
    kind = in_order(frame["kind"], ("hbw",))[0]
    frame = frame[frame["kind"] == kind]
    if emulated(frame):
        return (
            f"Not answered by this machine: {kind} was emulated on ordinary memory. The path "
            f"works; its ratios to {BASELINE} memory, {_range(frame)} over {len(frame)} cells, "
            "show the spread of the measurement and nothing about high-bandwidth memory."
        )
    claimed = frame[beyond(frame, found.floor)]
    faster = claimed[claimed["ratio"] > 1]
    if faster.empty:
        return (
            f"In {kind} over {BASELINE} memory {_no_claim(found.floor)} for a speed-up in any of "
            f"{len(frame)} cells (ratios {_range(frame)})."
        )
    best = max(rows(faster), key=lambda cell: cell.ratio)
    return (
        f"Up to {ratio_text(best.ratio)} times as fast in {kind} as in {BASELINE} memory (95 % "
        f"interval {interval_text(best.low, best.high)}; {_cell(best)}, {best.arm}); "
        f"faster beyond the noise floor in {len(faster)} of {len(frame)} cells. The paper claims "
        "4.45 for Broadcast at 16 ranks and 4.87 at most." + _quick(found)
    )


def _asked(found: Findings, factor: str) -> bool:
    measured = not found.placements.empty and factor in set(found.placements["factor"])
    levels = {"binding": ("packed", "spread"), "locality": ("local", "remote")}[factor]
    return measured or any(level in found.unmeasured for level in levels)


def _place(found: Findings, factor: str, done: str) -> str:
    frame = found.placements
    frame = frame if frame.empty else frame[frame["factor"] == factor]
    if frame.empty:
        levels = {"binding": ("packed", "spread"), "locality": ("local", "remote")}[factor]
        return "Not measured. " + "; ".join(
            f"{level}: {found.unmeasured[level]}" for level in levels if level in found.unmeasured
        )
    held = {"binding": "locality", "locality": "binding"}[factor]
    return _slowdown(usual(frame, held), found, done)


def _transport(found: Findings, transport: str) -> str:
    frame = found.transports
    frame = usual(frame[frame["transport"] == transport])
    return _slowdown(frame, found, f"with {transport} as with {OURS}, over the same buffers")


def _containers(found: Findings) -> list[Answer]:
    """An answer per operation, and one per arm that is missing."""
    arms = found.containers.get("arm", pd.Series(dtype=str))
    contained = found.containers[arms != USERLAND]
    operations = in_order(contained.get("operation", []), OPERATIONS)
    told = []
    if USERLAND in set(arms):
        question = "What do the image's files cost without a container: its Python, its libc?"
        told.append(Answer(question, cost.files(found)))
    if not found.isolation.empty:
        first, *others = cost.isolation(found)
        question = "What does a container cost over the same files without one?"
        told.append(Answer(question, first, points=tuple(others)))
    told += [
        Answer(f"What does a container cost {operation_name(name)}?", *cost.cost(found, name))
        for name in operations
    ]
    if told and found.paths:
        way = "Which data path did a container lose, what gets it back, and what did it cost?"
        none = "None: each MPI took the same ways in every container as on the host."
        points = (*found.paths, *cost.losses(found))
        told.append(Answer(way, found.lost or none, points=points))
    others = [each for each in found.caveats if each != found.lost]
    if told and others:
        cause = "What may be the cause beside the container itself?"
        told.append(Answer(cause, others[0], points=tuple(others[1:])))
    return told + [
        Answer(
            f"What does a container cost ({arm_name(arm)})?",
            f"Not measured. {arm}: {found.unmeasured[arm]}",
        )
        for arm in absent_containers(found.unmeasured)
    ]


def _python(found: Findings) -> list[Answer]:
    if found.python.empty:
        return []
    return [Answer("What does Python itself cost?", cost.python(found), points=DIFFERENCES)]


def _slowdown(frame: pd.DataFrame, found: Findings, done: str) -> str:
    floor = found.floor
    middle = float(np.median(frame["ratio"]))
    start = (
        f"The median cell takes {ratio_text(middle)} times as long {done} (ratios {_range(frame)} "
        f"over {len(frame)} cells); "
    )
    claimed = frame[beyond(frame, floor)]
    if claimed.empty:
        return start + f"{_no_claim(floor)} in any of them."
    slower, faster = claimed[claimed["ratio"] > 1], claimed[claimed["ratio"] < 1]
    parts = []
    if len(slower):
        worst = max(rows(slower), key=lambda cell: cell.ratio)
        parts.append(f"{_are(slower)} slower beyond the noise floor, up to {_ratio(worst)}")
    if len(faster):
        best = min(rows(faster), key=lambda cell: cell.ratio)
        parts.append(f"{_are(faster)} faster beyond the noise floor, down to {_ratio(best)}")
    rest = len(frame) - len(claimed)
    end = f" In the other {rest} {_no_claim(floor)}." if rest else ""
    significant = int((claimed["p_holm"] < 0.05).sum())
    test = (
        f"Holm-corrected p is below 0.05 in {significant or 'none'} of them; the smallest that "
        f"these blocks can reach is {p_text(frame['least_p_holm'].min())}."
    )
    return start + "; ".join(parts) + f". {test}" + _quick(found) + end


def _quick(found: Findings) -> str:
    """What keeps a quick campaign's effect from being a claim."""
    if found.blocks >= CLAIM_BLOCKS:
        return ""
    return f" Seen in {found.blocks} paired blocks; a claim needs {CLAIM_BLOCKS}."


def _are(frame: pd.DataFrame) -> str:
    return "1 is" if len(frame) == 1 else f"{len(frame)} are"


def _no_claim(floor: float) -> str:
    if not math.isfinite(floor):
        return f"{NO_CLAIM} (this campaign has no A/A pair, so its noise floor is unknown)"
    return f"{NO_CLAIM} (±{percent_text(floor)})"


def _ratio(cell: Any) -> str:
    interval = interval_text(cell.low, cell.high)
    return f"{ratio_text(cell.ratio)} times (95 % interval {interval}; {_cell(cell)})"


def _cell(cell: Any) -> str:
    place = f"{bytes_text(cell.bytes)}, {ranks_text(cell.ranks)}"
    return f"{operation_name(cell.operation)}, {cell.transport}, {place}"


def _range(frame: pd.DataFrame) -> str:
    return f"{ratio_text(frame['ratio'].min())} to {ratio_text(frame['ratio'].max())}"
