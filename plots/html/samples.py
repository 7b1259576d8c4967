"""The raw samples behind the ratios of containers, thinned so that a page can hold them.

Reads what each launch stored; how they are shown is templates/report.js.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.campaign import Campaign
from experiments.analysis.selection import rows
from experiments.model.arms import HOST
from experiments.model.environment import BARE_HOST
from experiments.results.result import CellResult, Result
from experiments.results.store import read_samples
from plots.layout.labels import arm_name, in_words, ratio_and_interval

ROOM = 2_000_000  # characters of a page, about, for all samples
_EACH = 5.5  # characters of one of them
MOST, LEAST = 200, 5  # samples shown of a launch's cell
_WITHIN = ("operation", "transport", "kind", "locality", "bytes")
_BETWEEN = ("mpi", "ranks", "binding")

Series = dict[tuple[Any, ...], list[dict[str, Any]]]
"""By arm and the factors of _BETWEEN and _WITHIN: one of each launch, in the order of blocks."""


def samples(campaign: Campaign) -> dict[str, Any]:
    """What the page's script draws; plain values.

    Returns:
        kept: the most samples shown of a launch's cell.
        series: each [samples measured, their median, the shown ones in order]; microseconds. Of
            more than `kept` those of evenly spaced ranks, the least and the greatest among them.
        cells: {index in Campaign.containers: {what: words, ratio, verdict, arm, pairs}}; pairs are
            [block, host's series, arm's].
    """
    launches = list(_measured(campaign))
    total = sum(len(cells) for _, cells in launches)
    kept = max(LEAST, min(MOST, int(ROOM / _EACH / max(1, total))))
    series: Series = {}
    shown: list[list[Any]] = []
    for launch, cells in launches:
        asked = launch.launch
        held = read_samples(campaign.folder / "launches" / f"{launch.name}.npz")
        for cell in cells:
            factors = launch.factors(cell)
            times = held[cell.samples][cell.warmup :].max(axis=1)
            series.setdefault(tuple(factors[k] for k in ("arm", *_BETWEEN, *_WITHIN)), []).append(
                {"block": asked.block, "group": cell.group, "series": len(shown)}
                | {"company": launch.company}
            )
            shown.append([times.size, _short(float(np.median(times))), thinned(times, kept)])
    return {
        "kept": kept,
        "series": shown,
        "cells": {
            str(cell.Index): _cell(cell, _pairs(cell, series)) for cell in rows(campaign.containers)
        },
    }


def text(values: Mapping[str, Any]) -> str:
    """JSON that may be inside a script element: no tag can begin or end in it."""
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def thinned(times: NDArray[np.float64], kept: int) -> list[float]:
    """At most so many of the times in microseconds: those of evenly spaced ranks, both ends too."""
    ordered = np.sort(times)
    if ordered.size > kept:
        ordered = ordered[np.round(np.linspace(0, ordered.size - 1, kept)).astype(int)]
    return [_short(float(time)) for time in ordered]


def _measured(campaign: Campaign) -> Iterator[tuple[Result, list[CellResult]]]:
    """Each launch of the host or a container, and its cells that were measured."""
    known = set(campaign.cells["operation"])
    for launch in campaign.launches:
        if launch.launch.arm == HOST or launch.launch.environment != BARE_HOST:
            yield launch, [cell for cell in launch.measured if cell.operation in known]


def _pairs(cell: Any, series: Series) -> list[list[int]]:
    """The blocks with a ratio that counts: both sides measured, in groups of the same size."""
    rest = [getattr(cell, key) for key in (*_BETWEEN, *_WITHIN)]
    host: dict[tuple[Any, ...], dict[str, Any]] = {}
    for launch in series.get((HOST, *rest), []):  # in a block of pairs, one beside each arm
        host[launch["block"],] = host[launch["block"], *launch["company"]] = launch
    pairs = []
    for launch in series.get((cell.arm, *rest), []):
        beside = host.get((launch["block"], *launch["company"]), host.get((launch["block"],)))
        if beside and beside["group"] == launch["group"]:
            pairs.append([launch["block"], beside["series"], launch["series"]])
    return pairs


def _cell(cell: Any, pairs: list[list[int]]) -> dict[str, Any]:
    return {
        "what": in_words(cell, "operation", "transport", "bytes", "mpi", "ranks", "kind"),
        "arm": arm_name(cell.arm),
        "ratio": ratio_and_interval(cell),
        "verdict": cell.verdict,
        "pairs": pairs,
    }


def _short(seconds: float) -> float:
    """Microseconds with three significant digits; whole where they are."""
    value = float(f"{seconds * 1e6:.3g}")
    return int(value) if value.is_integer() else value
