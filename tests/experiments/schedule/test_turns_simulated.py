"""Known effects on a machine that changes its speed: found by turns, and nothing else is claimed.

The machine is simulated; the order of turns, the stored values and the claims are not.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pandas as pd
import pytest

from experiments.analysis import reading
from experiments.analysis.ratios import floors, paired_ratio
from experiments.analysis.statistics import FACTORS, Verdict, verdict
from experiments.model.launch import Measurement
from experiments.schedule.turns import Action, Answer, Order, conduct, numbers

BLOCKS, CELLS = 6, 15
ASKED = Measurement(time_cap=0.1, min_iterations=10, max_iterations=1000)
DWELL, SPREAD = 0.2, 0.2  # seconds that the machine keeps its speed; log standard deviation of that
JITTER = 0.03  # of one operation
OPERATION = 1e-3  # seconds


@dataclass
class Machine:
    """Shared with others: its speed is another one every now and then."""

    rng: np.random.Generator
    now: float = 0.0
    until: float = 0.0
    pace: float = 1.0

    def take(self, seconds: float, noise: float = 1) -> float:
        """How long something takes that takes so long on average."""
        if self.now >= self.until:
            self.until = self.now + self.rng.exponential(DWELL)
            self.pace = float(self.rng.lognormal(0, SPREAD))
        taken = seconds * self.pace * float(self.rng.lognormal(0, noise * JITTER))
        self.now += taken
        return taken


@dataclass
class Arm:
    """A launch; its operations take `factor` times as long as those of the host, and vary by
    `noise` times as much."""

    machine: Machine
    factor: float
    noise: float = 1
    samples: dict[int, list[float]] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)

    def carry_out(self, orders: Sequence[Order]) -> list[Answer]:
        return [self._carry_out(order) for order in orders]

    def _carry_out(self, order: Order) -> Answer:
        if order.action is Action.TURN:
            self.turns[order.cell] = order.count
            times = [
                self.machine.take(OPERATION * self.factor, self.noise) for _ in range(order.count)
            ]
            self.samples.setdefault(order.cell, []).extend(times)
        return Answer(seconds=self.machine.take(OPERATION), group=1)


def rows(block: int, name: str, arm: Arm, company: str) -> list[dict[str, object]]:
    """As results are read back."""
    levels = dict.fromkeys(FACTORS, "")
    return [
        levels
        | {"block": block, "arm": name, "bytes": cell, "group": 1, "company": company}
        | {"median_s": float(np.median(times))}
        | {"turns": reading._turns(np.array(times), arm.turns[cell])}
        for cell, times in arm.samples.items()
    ]


def campaign(factor: float, seed: int, *, in_turns: bool, noise: float = 1) -> pd.DataFrame:
    """Blocks of the host, the host again and a container that takes `factor` times as long."""
    machine, order = Machine(np.random.default_rng(seed)), random.Random(seed)
    cells: list[dict[str, object]] = []
    for block in range(BLOCKS):
        factors = {"host": 1.0, "host-again": 1.0, "docker": factor}
        arms = {name: Arm(machine, slowdown) for name, slowdown in factors.items()}
        arms["docker"].noise = noise
        parties = [arms] if in_turns else [{name: arms[name]} for name in order.sample([*arms], 3)]
        for party in parties:
            asked = {name: arm.carry_out for name, arm in party.items()}
            assert conduct(asked, numbers(["x"] * CELLS), ASKED, order) == {}
        for name, arm in arms.items():
            cells += rows(block, name, arm, " ".join(arms) if in_turns else "")
    return pd.DataFrame(cells)


def claims(cells: pd.DataFrame) -> tuple[pd.DataFrame, list[Verdict]]:
    floor = floors(cells).largest
    ratios = paired_ratio(cells, "arm", "docker", "host")
    ends = zip(ratios["low"], ratios["high"], strict=True)
    return ratios, [verdict(low, high, floor) for low, high in ends]


RARE = [pytest.param(factor, marks=pytest.mark.rare) for factor in (1.02, 1.05, 1.2)]


@pytest.mark.parametrize("factor", [1.0, 1.01, *RARE])
def test_a_known_effect_is_found_to_one_per_cent(factor: float) -> None:
    for seed in range(6):
        cells = campaign(factor, seed, in_turns=True)
        assert floors(cells).largest < 0.03
        ratios, text = claims(cells)
        assert np.median(np.abs(ratios["ratio"] / factor - 1)) < 0.01
        if factor == 1:
            assert Verdict.DIFFERS not in text
        if factor >= 1.05:
            assert text.count(Verdict.DIFFERS) >= 0.8 * CELLS
        if factor >= 1.2:
            assert set(text) == {Verdict.DIFFERS}


@pytest.mark.rare
def test_an_interval_holds_the_effect_as_often_as_it_says() -> None:
    held = [
        low <= factor <= high
        for factor, seed in product((1.0, 1.02, 1.2), range(6))
        for low, high in claims(campaign(factor, 100 + seed, in_turns=True))[0][
            ["low", "high"]
        ].to_numpy()
    ]
    assert np.mean(held) > 0.93


def test_an_arm_with_four_times_the_noise_is_not_called_slower_or_faster() -> None:
    text = [
        claim
        for seed in range(6)
        for claim in claims(campaign(1.0, 200 + seed, in_turns=True, noise=4))[1]
    ]
    assert text.count(Verdict.DIFFERS) <= 0.02 * len(text)
    assert Verdict.TOO_FEW not in text


def test_one_after_the_other_the_same_machine_hides_all_but_large_effects() -> None:
    largest = [floors(campaign(1.05, seed, in_turns=False)).largest for seed in range(3)]
    assert min(largest) > 0.05
