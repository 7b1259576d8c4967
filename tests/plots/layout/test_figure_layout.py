"""A figure's page holds its words: nothing leaves it, nothing lies on anything else, all legible.

Checked on every figure, over campaigns from one cell to hundreds.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from experiments.analysis.findings.campaign import Findings
from plots.draw import drawings
from plots.layout.figure_layout import Drawing
from plots.layout.style import COLUMN_INCHES, TEXT_POINTS, style

Find = Callable[..., Findings]
SMALL = tuple(2**power for power in range(10, 25))

CAMPAIGNS: dict[str, dict[str, Any]] = {
    "quick": {"sizes": SMALL[::2]},
    "host only": {
        "arms": ("host", "host-again"),
        "missing": {
            "docker": "left out, no engine answers; install one: apt-get install docker.io"
        },
    },
    "one size, one block": {"sizes": (1024,), "blocks": 1, "transports": ("mpi",)},
    "hundreds of cells": {
        "arms": ("host", "host-again", "docker-tuned-one"),
        "emulated": False,
        "ranks": (2, 16),
        "bindings": ("packed", "spread"),
        "localities": ("local", "remote"),
        "transports": ("mpi",),
        "kinds": ("regular", "hbw", "hbw_interleave"),
        "sizes": SMALL,
        "blocks": 2,
    },
    "many containers and MPIs": {
        "arms": (
            "host",
            "host-again",
            "imb",
            *(
                f"docker-{profile}-{layout}"
                for profile in ("default", "tuned", "privileged")
                for layout in ("one", "per-rank", "isolated")
            ),
            "charliecloud",
        ),
        "mpis": ("openmpi", "impi"),
        "transports": ("direct", "mpi"),
        "kinds": ("regular",),
        "sizes": SMALL[::5],
        "blocks": 2,
    },
    "emulated machine": {
        "arms": ("vm-xeon-max-flat-snc4", "vm-docker-xeon-max-flat-snc4-privileged-one"),
        "emulated": False,
        "machine": "xeon-max-flat-snc4 (tcg)",
        "bindings": ("packed", "spread"),
        "transports": ("mpi",),
        "sizes": SMALL[::5],
        "blocks": 2,
    },
    "the paper's": {
        "arms": ("host", "host-again", "docker-tuned-one", "threads", "multiprocessing"),
        "emulated": False,
        "ranks": (2, 16),
        "bindings": ("packed", "spread"),
        "sizes": SMALL[::5],
        "blocks": 2,
    },
    "far buffers missing": {
        "arms": ("host",),
        "bindings": ("packed", "spread"),
        "missing": {"remote": "this machine has one NUMA node"},
    },
}


PRINTED = ("emulated machine", "the paper's")
"""Drawn once more as for a paper."""


@pytest.fixture(
    scope="module",
    params=[*((name, False) for name in sorted(CAMPAIGNS)), *((name, True) for name in PRINTED)],
    ids=lambda param: f"{param[0]}{', printed' * param[1]}",
)
def figures(request: pytest.FixtureRequest) -> list[Figure]:
    """Every figure of a campaign, laid out at the resolution of its PNG."""
    find, (name, printed) = request.getfixturevalue("findings"), request.param
    every = drawings(find(**CAMPAIGNS[name]), printed=printed)
    drawn = [each for each in every if isinstance(each, Drawing)]
    assert len(drawn) >= 2
    assert {each.printed for each in drawn} == {printed}
    with style(printed=printed):
        for each in drawn:
            each.figure.set_dpi(300)
            each.figure.draw_without_rendering()
    return [each.figure for each in drawn]


def words(figure: Figure) -> Iterator[tuple[str, Bbox, float]]:
    """Every text that is drawn, with the box it takes in pixels and its size in points."""
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            hidden |= set(_unseen(axis)) if axes.axison else set(axis.findobj(Text))
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in hidden:
            yield text.get_text(), text.get_window_extent(), text.get_fontsize()


def _unseen(axis: Axis) -> Iterator[Text]:
    """Labels of ticks beyond the ends of the axis; matplotlib keeps them and never draws them."""
    low, high = sorted(axis.get_view_interval())
    for minor in (False, True):
        for place, label in zip(
            axis.get_ticklocs(minor=minor), axis.get_ticklabels(minor=minor), strict=False
        ):
            if not low <= place <= high:
                yield label


def test_every_figure_is_one_column_wide(figures: list[Figure]) -> None:
    assert {figure.get_size_inches()[0] for figure in figures} == {COLUMN_INCHES}


def test_every_word_is_legible(figures: list[Figure]) -> None:
    assert min(size for figure in figures for _, _, size in words(figure)) >= TEXT_POINTS >= 7


def test_no_word_leaves_the_page(figures: list[Figure]) -> None:
    for figure in figures:
        page = figure.bbox
        for text, box, _ in words(figure):
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 and box.y1 <= page.y1, text


def test_no_word_lies_on_another(figures: list[Figure]) -> None:
    for figure in figures:
        for (text, box, _), (other, other_box, _) in combinations(words(figure), 2):
            common = Bbox.intersection(box, other_box)
            overlap = 0.0 if common is None else min(common.width, common.height)
            assert overlap < 3, f"{text!r} on {other!r}"  # 3 pixels at 300 dpi: under a hair
