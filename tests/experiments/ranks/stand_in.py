"""Stand-in for the harness, without MPI: its times are those of a machine that changes its speed.

Usage: stand_in.py FACTOR NOISE FOLDER; operations take FACTOR times as long as the host's, and vary
NOISE times as much. The machine's pace at a moment is the same in every process.
"""

import math
import random
import sys
import threading
import time
from pathlib import Path

import numpy as np

from experiments.measure.orders import obey
from experiments.model.launch import Launch
from experiments.programs.launch_folder import read_launch, write_result
from experiments.schedule.turns import Action, Answer, Order

DWELL, SPREAD = 0.002, 0.2  # seconds that the machine keeps its pace; log standard deviation of it
JITTER = 0.03  # of one operation
OPERATION = 1e-3  # seconds


def pace() -> float:
    """How many times as long everything takes now."""
    return math.exp(random.Random(int(time.monotonic() / DWELL)).gauss(0, SPREAD))


class Machine:
    """Carries out orders as programs.cells.Cells does."""

    def __init__(self, launch: Launch, factor: float, noise: float, seed: str) -> None:
        self._launch, self._factor, self._noise = launch, factor, noise
        self._rng = np.random.default_rng(list(seed.encode()))
        self._turns: dict[int, list[np.ndarray]] = {}
        self.cells: list[dict[str, object]] = []
        self.samples: dict[str, np.ndarray] = {}

    def carry_out(self, order: Order) -> Answer:
        if order.action is Action.BEGIN:
            self._turns[order.cell] = []
        if order.action is Action.TURN:
            sigma = JITTER * self._noise
            times = self._rng.lognormal(0, sigma, (order.count, 1))  # of the slowest rank
            every = np.repeat(times, self._launch.ranks, axis=1)
            self._turns[order.cell].append(OPERATION * self._factor * pace() * every)
        if order.action is Action.END:
            cell, name = self._launch.plan[order.cell], f"c{order.cell}"
            turns = self._turns.pop(order.cell)
            self.samples[name] = np.concatenate(turns)
            text = {"samples": name, "warmup": 0, "group": 1, "turn": len(turns[0])}
            self.cells.append(vars(cell) | {"emulated": False} | text)
        return Answer(seconds=OPERATION, group=1)


def main(factor: float, noise: float, folder: Path) -> None:
    began, launch = time.time(), read_launch(folder)
    campaign = folder.parents[1].name  # campaigns beside each other differ
    machine = Machine(launch, factor, noise, f"{campaign}/{launch.name}")
    _obey(folder, launch.ranks, machine)
    environment = {"versions": {"mpi": "none: a stand-in"}}
    parts = {"environment": environment, "ranks": [], "cells": machine.cells}
    write_result(folder, launch.to_dict(), began, machine.samples, **parts)


def _obey(folder: Path, ranks: int, machine: Machine) -> None:
    """Rank 0 measures; the others, threads of this process, only answer."""
    others = [
        threading.Thread(target=obey, args=(folder, rank, lambda order: Answer()))
        for rank in range(1, ranks)
    ]
    for thread in others:
        thread.start()
    obey(folder, 0, machine.carry_out)
    for thread in others:
        thread.join()


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
