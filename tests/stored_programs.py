"""Campaigns of a user's program as they are stored, with a known effect."""

import random
from dataclasses import replace
from pathlib import Path

from experiments.model.program import BANDS, CallCount, ProgramRequest, Timed
from experiments.results.program_runs import (
    ArmRun,
    Habitat,
    ProgramBlock,
    ProgramHeader,
    ProgramRuns,
)

ALLOWS = {"reading": 0, "placing": 0, "cpus": 2, "shm": 2**34, "memlock": -1}


def habitat(arm: str, **other: object) -> Habitat:
    """An environment that has and allows everything, with other values for some."""
    blas = {"BLAS": "libopenblas.so.0 0.3.21"}
    usual = Habitat(arm, Timed.RANKS, 4.0, 2, dict(ALLOWS), 0.0, blas)
    return replace(usual, **other)  # type: ignore[arg-type]


def stored(
    factor: float, blocks: int = 10, here: Habitat | None = None, slow: float = 1
) -> ProgramRuns:
    """A campaign in which a container takes `factor` times as long; calls take `slow` times."""
    draw = random.Random(7)

    def run(arm: str, seconds: float, calls: float) -> ArmRun:
        seconds *= draw.lognormvariate(0, 0.001)
        count = CallCount(100 * 2**20, [0, 0, 0, 0, 100, 0], [0] * BANDS)
        count.nanoseconds[4] = round(2 * calls * 1e9)
        return ArmRun(arm, seconds, 40, 0.02, 0.3, None, {"Allreduce": count})

    made = []
    for number in range(blocks):
        level = draw.uniform(0.9, 1.1)  # of the machine, which meets all runs of a block
        runs = (
            run("host", 4 * level, 1),
            run("host-again", 4 * level, 1),
            run("docker-default", 4 * level * factor, slow),
        )
        made.append(ProgramBlock(number, True, runs))
    request = ProgramRequest(("./a",), ("./a",), "i", 2, environments=("host", "docker"))
    habitats = (habitat("host"), here or habitat("docker-default"))
    header = ProgramHeader(request, "0", 1, 0.1, "sha256:0", habitats)
    return ProgramRuns(Path("results/x"), header, tuple(made))
