"""Campaigns with a known answer: how often claims are false, and how often effects are missed.

    .venv/bin/python -m tests.experiments.analysis.simulated 400

prints the table of docs/method.md, of so many campaigns for each line: with 400 it takes minutes.
A campaign has 3 MPIs, 6 series, 4 sizes, a reference arm, its repetition and two arms: 72 A/A cells
and 144 compared ones. Spreads by size are those of the stored campaign of containers.
"""

import sys
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.ratios import Floors, band
from experiments.analysis.statistics import (
    Verdict,
    median_ratio,
    simultaneous_intervals,
    verdict,
)

Array = NDArray[np.float64]

SPREADS = {2**10: 0.035, 2**16: 0.012, 2**20: 0.019, 2**22: 0.005}
"""Standard deviation of the log ratio of a block, by size."""
CELLS = tuple(product(("openmpi", "mpich", "impi"), range(6), SPREADS))
"""MPI, series and size."""
BLOCKS = (6, 10, 13, 20)
PLACE = 0.015  # standard deviation of what the place of an arm's files does to its log times
AFFECTED = slice(None, None, 13)
"""Of the compared cells, those with an effect, where there is one."""

_SIZES = np.array([size for *_, size in CELLS])
_MPI = np.array([["openmpi", "mpich", "impi"].index(mpi) for mpi, *_ in CELLS])
_OWN = np.array([SPREADS[size] for size in _SIZES])[:, np.newaxis] / np.sqrt(2)

Draw = Callable[[np.random.Generator, int, int], Array]
"""(cells, blocks): log times of the launches of an arm; takes blocks and the number of the arm."""


def normal(rng: np.random.Generator, blocks: int, arm: int) -> Array:
    return _OWN * rng.normal(size=(len(CELLS), blocks))


def heavy_tailed(rng: np.random.Generator, blocks: int, arm: int) -> Array:
    return _OWN * rng.standard_t(3, size=(len(CELLS), blocks)) / np.sqrt(3)


def skewed(rng: np.random.Generator, blocks: int, arm: int) -> Array:
    return _OWN * rng.exponential(size=(len(CELLS), blocks))


def unlike_cells(rng: np.random.Generator, blocks: int, arm: int) -> Array:
    factors = np.geomspace(0.2, 4, len(CELLS))[np.random.default_rng(1).permutation(len(CELLS))]
    return factors[:, np.newaxis] * normal(rng, blocks, arm)


def of_launches(rng: np.random.Generator, blocks: int, arm: int) -> Array:
    return normal(rng, blocks, arm) + rng.normal(0, 0.01, (3, blocks))[_MPI]


def unlike_arms(rng: np.random.Generator, blocks: int, arm: int) -> Array:
    return (4 if arm == 2 else 1) * normal(rng, blocks, arm)


def place_drawn_anew(rng: np.random.Generator, blocks: int, arm: int) -> Array:
    places = rng.normal(0, PLACE, (3, blocks))[_MPI]
    return normal(rng, blocks, arm) + np.where(_SIZES[:, np.newaxis] < 4096, places, 0)


def lasting_place(rng: np.random.Generator, blocks: int, arm: int) -> Array:
    """Of the files of an arm; the repetition of the reference arm runs the same files."""
    places = rng.normal(0, PLACE, (3, 1))[_MPI] * (arm >= 2)
    return normal(rng, blocks, arm) + np.where(_SIZES[:, np.newaxis] < 4096, places, 0)


NOISES: dict[str, Draw] = {
    "normal": normal,
    "heavy tails (t, 3 degrees of freedom)": heavy_tailed,
    "skewed (exponential)": skewed,
    "twenty times as strong in some cells": unlike_cells,
    "1 % shared by the cells of a launch": of_launches,
    "four times as strong in one arm": unlike_arms,
    "place of files 1.5 % at 1 KiB, anew in each block": place_drawn_anew,
}
LASTING = {"place of files 1.5 % at 1 KiB, the same in all blocks": lasting_place}
"""What no statistics of blocks can see."""


def campaign(
    rng: np.random.Generator, draw: Draw, blocks: int, effect: float = 0.0
) -> list[Verdict]:
    """The verdicts of one campaign; of 0.05, the cells AFFECTED take 5 % more time."""
    host, again, *arms = (draw(rng, blocks, arm) for arm in range(4))
    compared = np.concatenate([arm - host for arm in arms])
    compared[AFFECTED] += np.log1p(effect)
    return judged(np.exp(compared), np.exp(again - host))


def judged(compared: Array, twins: Array) -> list[Verdict]:
    """As ratios.jointly() and Floors have it; both (cells, blocks), the cells those of CELLS."""
    places = [(mpi, band(size)) for mpi, _, size in CELLS]
    middles = np.exp(np.median(np.log(twins), axis=1))
    held = Floors(tuple((*p, abs(r - 1)) for p, r in zip(places, middles, strict=True)))
    floors = {place: held.bound(*place).value for place in set(places)}
    own = np.array([median_ratio(ratios)[1:] for ratios in compared])
    joint = simultaneous_intervals(compared)
    low, high = np.minimum(own[:, 0], joint[:, 0]), np.maximum(own[:, 1], joint[:, 1])
    return [
        verdict(*own[n], floors[places[n % len(places)]], (low[n], high[n]))
        for n in range(len(compared))
    ]


def shares(draw: Draw, blocks: int, campaigns: int, effect: float = 0.0) -> dict[str, float]:
    """Over so many campaigns: `false`, of campaigns with a claim on a cell without an effect;
    `missed`, of cells with one that are not claimed; `equivalent`, of those, called that."""
    rng = np.random.default_rng(20201019)
    by_campaign = [np.array(campaign(rng, draw, blocks, effect)) for _ in range(campaigns)]
    verdicts = np.array(by_campaign)
    affected = np.zeros(verdicts.shape[1], dtype=bool)
    affected[AFFECTED] = effect != 0
    claimed = verdicts == Verdict.DIFFERS
    hit = verdicts[:, affected]
    return {
        "false": float(claimed[:, ~affected].any(axis=1).mean()),
        "missed": float((hit != Verdict.DIFFERS).mean()) if effect else 0.0,
        "equivalent": float((hit == Verdict.EQUIVALENT).mean()) if effect else 0.0,
    }


def table(campaigns: int) -> str:
    """Markdown, a line for each kind of noise and number of blocks."""
    head = ["noise", "blocks", "false claims", "5 % missed", "20 % missed", "3 % called none"]
    lines = [head, ["---"] * len(head)]
    for (name, draw), blocks in product((NOISES | LASTING).items(), BLOCKS):
        false = shares(draw, blocks, campaigns)["false"]
        five, twenty, three = (shares(draw, blocks, campaigns // 4, e) for e in (0.05, 0.2, 0.03))
        values = [false, five["missed"], twenty["missed"], three["equivalent"]]
        lines.append([name, str(blocks), *(f"{100 * value:.1f} %" for value in values)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(table(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
