"""Campaigns with known effects through the real driver, with a stand-in for the rank program.

Processes, pipes, turns, stored files, ratios and verdicts are real; only the times are a model's.
HBMCOMM_SIMULATED=6 runs 60 campaigns: 6 of each effect, and 6 more where the container's times vary
three times as much. Without it there is one campaign, of one effect.
"""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.analysis import reading
from experiments.analysis.ratios import floors, paired_ratio
from experiments.analysis.statistics import EQUIVALENCE, Verdict, verdict
from experiments.catalogue import spec
from experiments.environments.process import Process
from experiments.model.environment import BARE_HOST, DOCKER
from experiments.model.launch import Launch
from experiments.schedule.blocks import schedule
from tests.experiments.driver.instant import run
from tests.stored_launches import begin

CAMPAIGNS = int(os.environ.get("HBMCOMM_SIMULATED", "1"))
EFFECTS = (0.0, 0.01, 0.02, 0.05, 0.2) if "HBMCOMM_SIMULATED" in os.environ else (0.05,)
PROGRAM = Path(__file__).parent / "ranks" / "stand_in.py"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class StandIn:
    """An environment; operations take `factor` times as long in it, and vary `noise` times."""

    factor: float = 1.0
    noise: float = 1.0

    def command(self, launch: Launch, folder: Path) -> Process:
        words = (sys.executable, str(PROGRAM), str(self.factor), str(self.noise), str(folder))
        return Process(words, {**os.environ, "PYTHONPATH": str(ROOT)})


def measured(folder: Path, docker: StandIn) -> pd.DataFrame:
    """The container's ratios over the host in a campaign of six blocks, with verdicts."""
    quick = spec.load("quick")
    asked = spec.restrict(quick, environments="host,docker", profiles="tuned", blocks=6)
    sizes = tuple(2**power for power in range(16, 21))  # of one band, which needs 8 A/A cells
    few = {"transports": ("mpi",), "kinds": ("regular",), "sizes": sizes, "largest": {}}
    asked = replace(asked, factors=replace(asked.factors, **few))
    blocks = schedule(asked, 1)
    begin(folder, asked, blocks)
    made = {BARE_HOST: StandIn(), DOCKER: docker}
    failed = run(folder, blocks, lambda launch, to: made[launch.environment].command(launch, to))
    assert failed == []
    cells = reading.load(folder).cells
    assert cells["company"].ne("").all()
    noise, ratios = floors(cells), paired_ratio(cells, "arm", "docker-tuned-one", "host")
    held = [noise.of(mpi, size) for mpi, size in zip(ratios["mpi"], ratios["bytes"], strict=True)]
    ends = zip(ratios["low"], ratios["high"], held, strict=True)
    return ratios.assign(floor=held, verdict=[verdict(*row) for row in ends])


@pytest.mark.parametrize("noise", (1, 3) if CAMPAIGNS > 1 else (1,))
@pytest.mark.parametrize("effect", EFFECTS)
def test_claims_are_right_as_often_as_promised(effect: float, noise: float, tmp_path: Path) -> None:
    ratios = pd.concat(
        measured(tmp_path / str(number), StandIn(1 + effect, noise)) for number in range(CAMPAIGNS)
    )
    claimed = ratios["verdict"] == Verdict.DIFFERS
    held = (ratios["low"] <= 1 + effect) & (1 + effect <= ratios["high"])
    equivalent = ratios["verdict"] == Verdict.EQUIVALENT
    print(
        f"effect {effect:.0%}, noise {noise}: {len(ratios)} cells, "
        f"floor {ratios['floor'].max():.1%}, median ratio {ratios['ratio'].median():.3f}, "
        f"interval holds it in {held.mean():.1%}, claimed in {claimed.mean():.1%}, "
        f"equivalent in {equivalent.mean():.1%}"
    )
    if CAMPAIGNS > 1:
        assert ratios["ratio"].median() == pytest.approx(1 + effect, abs=0.01)
    else:  # its cells share its moments: together they are as wide of the mark as one of them
        assert ratios["low"].median() <= 1 + effect <= ratios["high"].median()
        assert ratios["ratio"].median() == pytest.approx(1 + effect, abs=0.04)
    assert held.mean() >= (0.8 if CAMPAIGNS == 1 else 0.92)
    if effect == 0:
        assert claimed.mean() <= 0.07
    else:
        assert not (claimed & (ratios["ratio"] < 1)).any()
    if effect > EQUIVALENCE + 0.01:
        assert (ratios["verdict"] != Verdict.EQUIVALENT).all()
    if effect == 0.2:
        assert claimed.all()
    assert np.isfinite(ratios["floor"]).all()
