"""Figure 2: how much faster collectives are in HBM, as bars, beside what the paper claims."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MultipleLocator

from experiments.emulated import recorded
from plots.findings import (
    BASELINE,
    Findings,
    absent_containers,
    alerts,
    in_order,
    rows,
    usual,
)
from plots.labels import (
    MPIS,
    OPERATIONS,
    bytes_text,
    mpi_name,
    operation_name,
    ranks_text,
    ratio_and_interval,
    ratio_text,
    setting,
    short_arm,
    significant,
)
from plots.parts import some_arms
from plots.sheet import Drawing, Sheet, Skipped, sheet
from plots.style import ALERT, INK, MUTED, PAPER, TRANSPORTS, shade

NAME = "speedup"
TITLE = "Speed-up of high-bandwidth memory"
CLAIM_BROADCAST_16 = 4.45
CLAIM_MOST = 4.87
"""Woo, Choi, Lee, Appl. Sci. 2020, 10(19), 6717: 445 % and 487 %, read as ratios of times."""

MOST_ARMS = 3
_BAR = 0.82


def speedup(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per MPI: the largest size; a row of panels per arm and transport."""
    frame = found.speedups
    if frame.empty:
        reasons = [
            f"{k}: {why}" for k, why in found.unmeasured.items() if k.startswith(("hbw", "hi"))
        ]
        reason = "; ".join(reasons) or f"it needs a kind of memory to compare with {BASELINE}"
        return [Skipped(NAME, TITLE, reason)]
    kind = in_order(frame["kind"], ("hbw",))[0]
    frame = usual(frame[frame["kind"] == kind])
    largest = int(frame["bytes"].max())
    frame = frame[frame["bytes"] == largest]
    mpis = in_order(frame["mpi"], MPIS)
    return [
        _drawing(frame[frame["mpi"] == mpi], mpi if len(mpis) > 1 else "", kind, found.unmeasured)
        for mpi in mpis
    ]


def _drawing(frame: pd.DataFrame, mpi: str, kind: str, unmeasured: dict[str, str]) -> Drawing:
    """Args: mpi, to be named in the title where there are several."""
    largest = int(frame["bytes"].max())
    arms, others = some_arms(frame["arm"], MOST_ARMS)
    frame = frame[frame["arm"].isin(arms)]
    operations = in_order(frame["operation"], OPERATIONS)
    ranks = sorted({int(count) for count in frame["ranks"]})
    panels = [
        (arm, transport) for arm in arms for transport in in_order(frame["transport"], TRANSPORTS)
    ]
    absent = absent_containers(unmeasured)
    real = not recorded.machines(frame[recorded.COLUMN])  # else the paper's claim has no place
    page = sheet(
        f"Speed-up of {kind} over {BASELINE}, {bytes_text(largest)}"
        + (f", {ranks_text(ranks[0])}" if len(ranks) == 1 else ""),
        setting(frame),
        rows=len(panels),
        columns=1,
        panel_height=0.95 if len(panels) <= 2 else 0.8,
        row_heads=[f"{short_arm(arm)}, {transport}" for arm, transport in panels],
        alerts=alerts(frame) + [f"Not measured. {arm}: {unmeasured[arm]}" for arm in absent],
        notes=[*_notes(frame, real), *([others] if others else [])],
        left=0.36,
        below=0.2 if len(ranks) == 1 else 0.36,
    )
    for index, (arm, transport) in enumerate(panels):
        axes = page.panels[index][0]
        mine = frame[(frame["transport"] == transport) & (frame["arm"] == arm)]
        _panel(axes, mine, operations, ranks)
        if transport == "mpi" and real:
            _claims(axes, operations, ranks)
    highest = float(np.nanmax(frame[["ratio", "high"]].to_numpy(dtype=float)))
    _axes(page, operations, ranks, max(CLAIM_MOST * real, highest) * 1.17)
    return Drawing(
        f"{NAME}-{mpi}" if mpi else NAME,
        f"{TITLE}: {kind} over {BASELINE}" + (f", {mpi_name(mpi)}" if mpi else ""),
        f"Bars: time with buffers in {BASELINE} memory over time in {kind}, paired within a block; "
        "median over blocks with its exact 95 % interval; 1× is no difference."
        + (_CLAIM if real else ""),
        _description(frame, kind, largest) + (_CLAIM_IN_WORDS if real else ""),
        page.figure,
    )


_CLAIM = (
    " The dashed marks are the paper's figures (Woo, Choi and Lee 2020, Knights Landing, 445 % for "
    "Bcast at 16 ranks, 487 % at most), read as ratios of times; they are its claim, not a "
    "measurement of this campaign."
)
_CLAIM_IN_WORDS = " The paper claims 4.45 for Bcast at 16 ranks and 4.87 at most."


def _notes(frame: pd.DataFrame, real: bool) -> list[str]:
    notes = ["Bars: median over paired blocks with 95 % interval."]
    notes[0] += " Dashed: the paper's claim." if real else ""
    if frame["low"].isna().any():
        notes.append("Hollow bar: too few blocks for an interval.")
    return notes


def _panel(axes: Axes, frame: pd.DataFrame, operations: list[str], ranks: list[int]) -> None:
    axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
    few = len(operations) * len(ranks) <= 6
    for cell in rows(frame):
        place = _place(operations, ranks, cell.operation, cell.ranks)
        known = math.isfinite(cell.low) and math.isfinite(cell.high)
        axes.bar(
            place,
            cell.ratio,
            width=_BAR,
            facecolor=shade(ranks.index(cell.ranks), len(ranks)) if known else PAPER,
            edgecolor=INK,
            linewidth=0.5,
            zorder=2,
        )
        if known:
            axes.vlines(place, cell.low, cell.high, color=INK, linewidth=1.0, zorder=3)
        axes.annotate(
            ratio_text(cell.ratio) if few else significant(cell.ratio, 2),
            (place, cell.high if known else cell.ratio),
            xytext=(0, 1.5),
            textcoords="offset points",
            ha="center",
        )


def _claims(axes: Axes, operations: list[str], ranks: list[int]) -> None:
    """The paper's two figures: at most, and Bcast at 16 ranks."""
    axes.axhline(CLAIM_MOST, color=ALERT, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1.8)
    axes.annotate(
        "paper: 487 % at most", (1, CLAIM_MOST), xycoords=("axes fraction", "data"),
        xytext=(0, 1.5), textcoords="offset points", ha="right", va="bottom", color=ALERT,
    )  # fmt: skip
    if "bcast" not in operations:
        return
    counts = [16] if 16 in ranks else ranks
    left = _place(operations, ranks, "bcast", counts[0]) - _BAR / 2
    right = _place(operations, ranks, "bcast", counts[-1]) + _BAR / 2
    axes.hlines(
        CLAIM_BROADCAST_16, left, right, color=ALERT, linewidth=1.4, linestyle=(0, (2, 1)),
        zorder=3.5,
    )  # fmt: skip
    axes.annotate(
        "paper: 445 %, 16 ranks", (right, CLAIM_BROADCAST_16), xytext=(3, 0),
        textcoords="offset points", va="center_baseline", color=ALERT,
    )  # fmt: skip


def _place(operations: list[str], ranks: list[int], operation: str, count: int) -> int:
    """Where a bar stands: operations side by side, one bar per rank count, one space between."""
    return operations.index(operation) * (len(ranks) + 1) + ranks.index(count)


def _axes(page: Sheet, operations: list[str], ranks: list[int], top: float) -> None:
    """Bars from 0; below each its rank count where there are several, and the operation."""
    axes = page.panels[-1][0]
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MultipleLocator(max(1, round(top / 6))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}×"))
    axes.set_xlim(-0.8, len(operations) * (len(ranks) + 1) - 1.2)
    several = len(ranks) > 1
    places = [_place(operations, ranks, name, n) for name in operations for n in ranks]
    axes.set_xticks(places, [str(n) if several else "" for _ in operations for n in ranks])
    for name in operations:
        middle = _place(operations, ranks, name, ranks[0]) + (len(ranks) - 1) / 2
        axes.annotate(
            operation_name(name), (middle, 0), xycoords=("data", "axes fraction"),
            xytext=(0, -13 if several else -3), textcoords="offset points", ha="center", va="top",
        )  # fmt: skip
    if several:
        axes.annotate(
            "ranks", (0, 0), xycoords="axes fraction", xytext=(-3, -4.5),
            textcoords="offset points", ha="right", va="top", color=MUTED,
        )  # fmt: skip
    for panel in page.flat():
        panel.grid(False, axis="x")
        panel.tick_params(axis="x", length=0, pad=3.5)


def _description(frame: pd.DataFrame, kind: str, largest: int) -> str:
    parts = [
        f"{operation_name(cell.operation)}, {ranks_text(cell.ranks)}, {cell.transport}, "
        f"{cell.arm}: {ratio_and_interval(cell.ratio, cell.low, cell.high)}."
        for cell in rows(frame)
    ]
    return (
        f"Bar chart of the speed-up of {kind} over {BASELINE} at {bytes_text(largest)}. "
        + " ".join(parts)
    )
