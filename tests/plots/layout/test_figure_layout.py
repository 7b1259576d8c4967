"""A figure's page holds its words: nothing leaves it, nothing overlaps, all legible.

Checked on every figure, over campaigns from one cell to hundreds.
"""

from typing import Any

import pytest

from plots.draw import drawings
from plots.layout.figure_layout import Drawing
from plots.layout.style import style
from tests.campaigns import find
from tests.plots.legible import check_words

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


PRINTED = ("emulated machine", "quick", "the paper's")
"""Drawn once more as for a paper."""
LARGE = ("hundreds of cells", "many containers and MPIs", "the paper's")
"""CI leaves these out: half a minute each."""


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.rare] if name in LARGE else []


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        pytest.param(name, printed, marks=_marks(name))
        for printed, names in ((False, sorted(CAMPAIGNS)), (True, PRINTED))
        for name in names
    ],
)
def test_every_word_is_legible_on_the_page_and_on_no_other(name: str, printed: bool) -> None:
    every = drawings(find(**CAMPAIGNS[name]), printed=printed)
    drawn = [drawing for drawing in every if isinstance(drawing, Drawing)]
    assert len(drawn) >= 2
    assert {drawing.figure.printed for drawing in drawn} == {printed}
    with style(printed=printed):
        for drawing in drawn:
            check_words(drawing.figure)
