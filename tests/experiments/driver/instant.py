"""Launches that end at once or never, for tests of the runner."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.catalogue import spec
from experiments.driver.launching import LaunchContext
from experiments.driver.runner import Runner
from experiments.environments.process import Command, Process
from experiments.model.environment import DOCKER, EnvironmentId
from experiments.model.launch import Block, Launch
from experiments.schedule.blocks import schedule

ME = (os.getuid(), os.getgid())
SIZES = (1024,)
HARNESS = """
import json, pathlib, sys, threading
import numpy as np
from experiments.measure import lines, orders
from experiments.schedule.turns import Answer
folder, mpi, code = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("said by the launch", flush=True)
if code == 0 and lines.are_there(folder):
    ranks = [
        threading.Thread(target=orders.obey, args=[folder, rank, lambda _: Answer(1e-3)])
        for rank in (0, 1)
    ]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
launch = json.loads((folder / "launch.json").read_text())
environment = {"versions": {"mpi": mpi}}
result = {"format": 2, "launch": launch, "cells": [], "environment": environment, "ranks": []}
if code == 0:
    (folder / "result.json").write_text(json.dumps(result))
    np.savez(folder / "samples.npz", c0=np.ones((1, 1)))
sys.exit(code)
"""


@dataclass(frozen=True)
class Instant:
    """An environment with launches that end at once."""

    mpi: str = "5.0"
    code: int = 0

    def command(self, launch: Launch, folder: Path) -> Process:
        argv = (sys.executable, "-c", HARNESS, str(folder), self.mpi, str(self.code))
        return Process(argv)


class Stuck(Instant):
    """An environment with launches that never start to measure."""

    def command(self, launch: Launch, folder: Path) -> Process:
        return Process((sys.executable, "-c", "import time; time.sleep(600)"))


def host_and_docker(blocks: int, sizes: Sequence[int] = SIZES) -> tuple[Block, ...]:
    """A small campaign of three arms: host, host again, a container."""
    arms = {"environments": "host,docker", "profiles": "tuned"}
    return schedule(spec.restrict(spec.load("quick"), **arms, sizes=sizes, blocks=blocks), 1)


Gone = Mapping[EnvironmentId, Callable[[], str]]
Commands = Callable[[Launch, Path], Command]


def run(
    folder: Path, blocks: Sequence[Block], commands: Commands, gone: Gone | None = None
) -> list[str]:
    """What Runner answers with such commands and without an engine."""
    context = LaunchContext(folder, commands, ME, gone=gone or {})
    return Runner(context, blocks).run()


def alike(every: Instant) -> Commands:
    return every.command


def apart(docker: Instant) -> Commands:
    return each(lambda launch: docker if launch.environment == DOCKER else Instant())


def each(environment: Callable[[Launch], Instant]) -> Commands:
    return lambda launch, folder: environment(launch).command(launch, folder)
