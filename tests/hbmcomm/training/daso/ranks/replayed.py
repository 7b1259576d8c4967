"""Rank program: DASO on ranks in the hosts 0, 1, 0, 1, ... against a replay on one rank.

The replay knows all ranks' gradients. Usage: replayed.py SEED TRIALS
"""

import random
import sys

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from hbmcomm import HbmcommError
from hbmcomm.training.daso import Arrays, Daso, Schedule
from tests.hbmcomm.ranks.refusal import refused

Vector = NDArray[np.float64]
SHAPES = ((3, 5), (7,), (), (2, 2, 2))
SIZE = sum(int(np.prod(shape)) for shape in SHAPES)
RATE, MOMENTUM = 0.1, 0.5
HOSTS = 2
comm = MPI.COMM_WORLD


def gradient(x: Vector, rank: int, batch: int) -> Vector:
    """Gradient of a parabola around a point that differs by rank and batch."""
    return x - np.random.default_rng((rank, batch)).normal(size=SIZE)


class Network:
    """Parameters, gradients and momentum in arrays of several shapes."""

    def __init__(self, rank: int) -> None:
        self.x = [np.full(shape, 1.0 + rank) for shape in SHAPES]
        self.g = [np.zeros(shape) for shape in SHAPES]
        self.m = [np.zeros(shape) for shape in SHAPES]

    def step(self) -> None:
        for x, g, m in zip(self.x, self.g, self.m, strict=True):
            m *= MOMENTUM
            m += g
            x -= RATE * m

    def whole(self) -> Vector:
        return np.concatenate([x.ravel() for x in self.x])

    def backward(self, batch: int) -> None:
        flat, begin = gradient(self.whole(), comm.rank, batch), 0
        for g in self.g:
            g[...] = flat[begin : begin + g.size].reshape(g.shape)
            begin += g.size


def replay(schedule: Schedule, lengths: list[int], losses: list[float]) -> list[Vector]:
    """The parameters of each host at the end of each epoch, side by side."""
    x = np.ones((HOSTS, SIZE))
    m = np.zeros((HOSTS, SIZE))
    parameters, count = [], 0
    for length, loss in zip(lengths, losses, strict=True):
        sent: tuple[int, Vector] | None = None
        for batch in range(1, length + 1):
            g = np.array(
                [
                    np.mean([gradient(x[h], r, count) for r in range(h, comm.size, HOSTS)], axis=0)
                    for h in range(HOSTS)
                ]
            )
            if schedule.is_blocking:
                g[:] = g.mean(axis=0)
            m = MOMENTUM * m + g
            x = x - RATE * m
            count += 1
            schedule.end_batch()
            if sent is not None and batch - sent[0] == schedule.wait:
                s = schedule.wait
                x, sent = (2 * s * x + sent[1]) / (2 * s + HOSTS), None
            if schedule.begins_exchange:
                sent = batch, x.sum(axis=0)
        if not schedule.is_warming_up:
            if sent is not None and sent[0] != length:
                s = length - sent[0]
                x = (2 * s * x + sent[1]) / (2 * s + HOSTS)
            x = np.tile(x.mean(axis=0), (HOSTS, 1))
        parameters.append(x)
        schedule.end_epoch(loss)
    return parameters


def trial(draw: random.Random) -> None:
    skips = draw.randint(1, 6)
    given = {
        "epochs": 5,
        "warmup": draw.randint(0, 2),
        "cooldown": draw.randint(0, 2),
        "skips": skips,
        "wait": draw.randint(1, skips),
        "patience": 0,
    }
    lengths = [draw.randint(1, 12) for _ in range(5)]
    due = replay(Schedule(**given), lengths, [1.0] * 5)
    network = Network(comm.rank)
    count = 0
    save_at = draw.randrange(sum(lengths))
    arrays = Arrays(network.x, network.g, network.step)
    daso = Daso(arrays, comm, Schedule(**given), host=comm.rank % HOSTS)
    for epoch, length in enumerate(lengths):
        for _ in range(length):
            network.backward(count)
            daso.step()
            if count == save_at:
                state, kept = daso.state_dict(), [array.copy() for array in network.x]
                daso.close()
                daso = Daso(arrays, comm, Schedule(**given), host=comm.rank % HOSTS)
                daso.load_state_dict(state)
                for x, saved in zip(network.x, kept, strict=True):
                    x[...] = saved
            count += 1
        mean = daso.end_epoch(2.0 * comm.rank / (comm.size - 1))
        assert mean == 1.0
        np.testing.assert_allclose(network.whole(), due[epoch][comm.rank % HOSTS], rtol=1e-12)
        bits = comm.allgather(network.whole().tobytes())
        assert len(set(bits)) == 1, f"ranks differ after epoch {epoch}: {given}"
    daso.close()


seed, trials = map(int, sys.argv[1:])
draw = random.Random(seed)
for _ in range(trials):
    trial(draw)
plan = Schedule(4)
other = [np.zeros(3 + (comm.rank == 1))]
with refused(ValueError, "rank 1 has parameters"):
    Daso(Arrays(other, other, print), comm, plan)
whole = [np.zeros(3, int)]
with refused(ValueError, "int64"):
    Daso(Arrays(whole, whole, print), comm, plan)
real = [np.zeros(3)]
with refused(ValueError, "on all ranks, or none"):
    Daso(Arrays(real, real, print), comm, plan, host=None if comm.rank else 1)
with refused(ValueError, "rank 1 has the schedule"):
    Daso(Arrays(real, real, print), comm, Schedule(4, warmup=comm.rank % 2))
absent = Arrays(real, real, print)
if comm.rank == 1:
    del absent._parameters
with refused(HbmcommError, "rank 1: AttributeError"):
    Daso(absent, comm, plan)
Daso(Arrays(real, real, print), comm, plan, host=np.int64(comm.rank % HOSTS)).close()
with refused(TypeError, "give Arrays"):
    Daso(print, comm, plan)
print("as replayed", flush=True)
