"""Figure 4: what a container costs, cell by cell, against the noise floor of the host itself."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from plots.answers import beyond
from plots.figures.marks import HOLLOW, kind_handles, ratio_axis, ratio_span
from plots.findings import CONTAINERS, HOST, Findings, emulated, in_order, rows, usual
from plots.labels import (
    EMULATED,
    OPERATIONS,
    bytes_text,
    operation_name,
    percent_text,
    ranks_text,
    ratio_and_interval,
    setting,
)
from plots.sheet import Drawing, Skipped, say_instead, sheet
from plots.style import BAND, KINDS, MUTED, PAPER, TRANSPORTS, look

NAME = "container"
TITLE = "Cost of a container"
MOST = 4.0
"""The axis ends at this ratio at the latest; what lies beyond is an arrow at its edge."""

_ROW = 0.135


def container(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per container arm and rank count; one in words for each arm that is missing."""
    absent = [level for level in CONTAINERS if level in found.unmeasured]
    missing: list[Drawing | Skipped] = [_missing(arm, found.unmeasured[arm]) for arm in absent]
    frame = found.containers
    if frame.empty:
        return missing or [Skipped(NAME, TITLE, "this campaign has no container arm")]
    return [
        _drawing(usual(frame[(frame["arm"] == arm) & (frame["ranks"] == ranks)]), arm, ranks, found)
        for arm, ranks in sorted({(str(cell.arm), int(cell.ranks)) for cell in rows(frame)})
    ] + missing


def _missing(arm: str, why: str) -> Drawing:
    page = sheet(
        f"{arm} over {HOST}", "", rows=1, columns=1, panel_height=0.8, left=0.1, below=0.06
    )
    say_instead(page.panels[0][0], f"{arm}: {why}")
    return Drawing(
        f"{NAME}-{arm}",
        f"{TITLE}: {arm}",
        f"The {arm} arm of this campaign is missing.",
        f"Not measured. {arm}: {why}",
        page.figure,
    )


def _drawing(frame: pd.DataFrame, arm: str, ranks: int, found: Findings) -> Drawing:
    floor = found.floor
    operations = in_order(frame["operation"], OPERATIONS)
    transports = in_order(frame["transport"], TRANSPORTS)
    kinds = in_order(frame["kind"], KINDS)
    sizes = sorted({int(size) for size in frame["bytes"]})
    row_height = _ROW * max(1.0, 0.55 * len(kinds))
    page = sheet(
        f"{arm} over {HOST}, time ratio, {ranks_text(ranks)}",
        setting(frame),
        rows=len(operations),
        columns=len(transports),
        panel_height=row_height * (len(sizes) + 0.6),
        column_heads=transports,
        row_heads=[operation_name(operation) for operation in operations],
        legend=[*kind_handles(frame), _floor_handle(floor)],
        legend_columns=2,
        alerts=([EMULATED] if emulated(frame) else []) + list(found.caveats),
        notes=_notes(frame, floor),
        left=0.58,
    )
    widest = 1.12 / (1 - floor) if floor < 1 else MOST
    span = ratio_span(frame, least=min(MOST, widest if math.isfinite(floor) else 1.1), most=MOST)
    for row, operation in zip(page.panels, operations, strict=True):
        for axes, transport in zip(row, transports, strict=True):
            mine = frame[(frame["operation"] == operation) & (frame["transport"] == transport)]
            if math.isfinite(floor):
                axes.axvspan(
                    max(1 - floor, 1 / span), 1 + floor, color=BAND, linewidth=0, zorder=0.5
                )
            axes.axvline(1, color=MUTED, linewidth=0.7, zorder=1)
            _panel(axes, mine, sizes, kinds, span)
            axes.grid(False, axis="y")
            axes.tick_params(axis="y", length=0)
    axes = page.panels[0][0]
    axes.set_ylim(len(sizes) - 0.4, -0.6)
    axes.yaxis.set_major_locator(FixedLocator(list(range(len(sizes)))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: bytes_text(sizes[round(y)])))
    axes.set_xscale("log")
    axes.set_xlim(1 / span, span)
    ratio_axis(axes.xaxis, span)
    _direction(page.panels[-1], f"← {arm} faster · slower →")
    return Drawing(
        f"{NAME}-{arm}-{ranks}-ranks",
        f"{TITLE}: {arm} over {HOST}, {ranks_text(ranks)}",
        f"Time in {arm} over time on the {HOST}, paired within a block; median over blocks with "
        "its BCa bootstrap 95 % interval. The shaded band is the noise floor: how far two "
        "identical host arms of this campaign stray from 1×. No effect is claimed for an "
        "interval that reaches into the band." + "".join(f" {each}" for each in found.caveats),
        _description(frame, arm, ranks, floor),
        page.figure,
    )


def _direction(bottom: list[Axes], text: str) -> None:
    """What left and right mean: below each panel where there is room, else once for all."""
    if len(bottom) <= 2:
        for axes in bottom:
            axes.set_xlabel(text)
    else:
        middle = len(bottom) // 2
        bottom[middle].set_xlabel(text, x=0.5 if len(bottom) % 2 else -0.1)


def _floor_handle(floor: float) -> Patch:
    if not math.isfinite(floor):
        return Patch(
            facecolor=PAPER, edgecolor=MUTED, linewidth=0.5, label="no A/A pair, no noise floor"
        )
    return Patch(facecolor=BAND, label=f"noise floor ±{percent_text(floor)}")


def _notes(frame: pd.DataFrame, floor: float) -> list[str]:
    notes = [f"Median over {_blocks(frame)}, paired, with 95 % interval."]
    if frame["low"].isna().any():
        notes.append(HOLLOW.replace("launches", "blocks"))
    if (frame["ratio"] > MOST).any() or (frame["ratio"] < 1 / MOST).any():
        notes.append(f"Arrow: beyond {MOST:g}×; its value is in the table.")
    return notes


def _blocks(frame: pd.DataFrame) -> str:
    fewest, most = int(frame["blocks"].min()), int(frame["blocks"].max())
    if fewest < most:
        return f"{fewest} to {most} blocks"
    return "1 block" if most == 1 else f"{most} blocks"


def _panel(
    axes: Axes, frame: pd.DataFrame, sizes: list[int], kinds: list[str], span: float
) -> None:
    for cell in rows(frame):
        offset = 0.56 * (kinds.index(cell.kind) - (len(kinds) - 1) / 2) / max(1, len(kinds) - 1)
        y = sizes.index(cell.bytes) + (offset if len(kinds) > 1 else 0.0)
        colour, marker = look(cell.kind).colour, look(cell.kind).marker
        known = math.isfinite(cell.low) and math.isfinite(cell.high)
        if known:
            axes.hlines(y, cell.low, cell.high, color=colour, linewidth=1.2, zorder=2)
        x = min(max(cell.ratio, 1 / span), span)
        if x != cell.ratio:
            marker = ">" if cell.ratio > span else "<"
        axes.plot(
            x,
            y,
            color=colour,
            linestyle="none",
            marker=marker,
            markerfacecolor=colour if known else PAPER,
            markeredgewidth=0.7,
            clip_on=False,
            zorder=3,
        )


def _description(frame: pd.DataFrame, arm: str, ranks: int, floor: float) -> str:
    outside = [
        f"{operation_name(cell.operation)}, {cell.transport}, {cell.kind}, "
        f"{bytes_text(cell.bytes)}: {ratio_and_interval(cell.ratio, cell.low, cell.high)}."
        for cell in rows(frame[beyond(frame, floor)])
    ]
    return (
        f"Forest plot of the time in {arm} over the time on the {HOST}, {ranks_text(ranks)}, "
        f"{len(frame)} cells, noise floor {percent_text(floor)}. Intervals beyond the noise floor: "
        + (" ".join(outside) if outside else "none.")
    )
