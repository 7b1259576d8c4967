"""Whole trainings with DASO and with a blocking allreduce: time, loss and bytes, seed by seed.

A program of its own, which mpiexec starts; docs/systems/daso.md has the command. Both ways, and the
computation alone, take turns epoch by epoch in one job. For each seed they begin alike and see the
same samples.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np
from mpi4py import MPI

from experiments.implementations.daso import trainer_of
from experiments.implementations.network import Samples, batches_of, samples, use_one_thread
from experiments.machine.links import traffic
from experiments.model.workloads import ALONE, BLOCKING, DASO

RATE = 0.05  # of learning in the first epoch; it falls to 0 along a cosine
PLATEAU = 0.02  # a loss that falls by less in three epochs halves what DASO skips
UNSEEN = 4096  # samples of the final loss
WAYS = (DASO, BLOCKING, ALONE)


class Course:
    """One way through one seed's training; its seconds and the bytes sent by this host so far."""

    def __init__(self, way: str, seed: int, comm: MPI.Intracomm, epochs: int) -> None:
        phases = {"epochs": epochs, "warmup": 1, "cooldown": 1, "threshold": PLATEAU}
        self._trainer = trainer_of(way, seed, comm, **phases)
        self._comm, self._epochs = comm, epochs
        self.seconds, self.sent = 0.0, 0

    def epoch(self, number: int, batches: Sequence[Samples]) -> None:
        """Train one epoch; the time is that of the slowest rank."""
        self._trainer.network.rate = RATE * (1 + np.cos(np.pi * number / self._epochs)) / 2
        self._comm.Barrier()
        sent, began = traffic().sent, time.monotonic()
        losses = [self._trainer.train(batch) for batch in batches]
        self._trainer.end_epoch(float(np.mean(losses)))
        self._comm.Barrier()
        self.seconds += time.monotonic() - began
        self.sent += traffic().sent - sent

    def end(self, unseen: Samples) -> float:
        """The final loss; the training is closed."""
        loss = self._trainer.network.loss(unseen)
        self._trainer.close()
        return loss


def train(seed: int, comm: MPI.Intracomm, asked: argparse.Namespace) -> dict[str, float]:
    """All ways through one seed; what a row of the table holds, on rank 0."""
    courses = {way: Course(way, seed, comm, asked.epochs) for way in WAYS}
    for number in range(asked.epochs):
        stream = 1 + number * comm.size + comm.rank
        batches = batches_of(samples(seed, stream, asked.batches * asked.batch), asked.batch)
        for way in np.roll(WAYS, number):
            courses[way].epoch(number, batches)
    unseen = samples(seed, 0, UNSEEN)
    losses = {way: course.end(unseen) for way, course in courses.items()}
    daso, blocking, alone = (courses[way] for way in WAYS)
    return {
        "share of communication": 1 - alone.seconds / blocking.seconds,
        "blocking, s": blocking.seconds,
        "DASO, s": daso.seconds,
        "time, DASO/blocking": daso.seconds / blocking.seconds,
        "blocking's loss": losses[BLOCKING],
        "DASO's loss": losses[DASO],
        "loss, DASO/blocking": losses[DASO] / losses[BLOCKING],
        "bytes, DASO/blocking": daso.sent / blocking.sent if blocking.sent else float("nan"),
    }


def to_table(rows: Mapping[int, dict[str, float]]) -> str:
    """A row for each seed, then their medians, as Markdown."""
    names = list(next(iter(rows.values())))
    medians = {name: float(np.median([row[name] for row in rows.values()])) for name in names}
    lines = [["seed", *names], ["---"] * (1 + len(names))]
    for title, row in [*((str(seed), row) for seed, row in rows.items()), ("median", medians)]:
        lines.append([title, *(f"{row[name]:.3f}" for name in names)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: Sequence[str]) -> None:
    """Train and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--epochs", type=int, default=16, help="first and last block")
    parser.add_argument("--batches", type=int, default=24, help="of an epoch")
    parser.add_argument("--batch", type=int, default=256, help="samples of a rank in a batch")
    asked = parser.parse_args(arguments)
    if min(*asked.seeds, asked.epochs, asked.batches, asked.batch) < 1:
        parser.error("seeds, epochs, batches and samples are whole numbers of 1 or more")
    use_one_thread()
    comm = MPI.COMM_WORLD
    rows = {seed: train(seed, comm, asked) for seed in asked.seeds}
    if comm.rank == 0:
        print(to_table(rows), end="", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
