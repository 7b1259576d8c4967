"""Rank program: jobs of every placement, optimiser and design; all must have the serial weights.

Usage: steps.py, on four ranks.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError, OutOfMemory, PeerError
from hbmcomm.training.parameter_server import (
    SGD,
    Adam,
    AdamW,
    Momentum,
    Nesterov,
    Optimizer,
    ParameterServer,
    messages,
    serve,
)
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
SHAPES = [(3,), (130, 77), (), (1,), (40_000,), (0, 5), (2, 3, 4)]
STEPS = 3
MANY_PIECES = 2**21  # floats: more pieces for each owner than are under way at once
OPTIMIZERS: list[Callable[[], Optimizer]] = [
    lambda: SGD(0.1),
    lambda: Momentum(0.05, 0.9),
    lambda: Nesterov(0.05, 0.8),
    lambda: Adam(0.01),
    lambda: AdamW(0.01, decay=0.1),
]


def drawn(*seed: int) -> list[np.ndarray]:
    """One array for each tensor."""
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype("float32") for shape in SHAPES]


class Serial:
    """The weights as one process computes them."""

    def __init__(self, optimizer: Optimizer, workers: list[int]) -> None:
        self.optimizer, self.workers, self.step = optimizer, workers, 0
        self.weights = drawn(99)
        self.state = [
            [np.zeros(shape, "float32") for _ in range(optimizer.states)] for shape in SHAPES
        ]

    def advance(self) -> None:
        self.step += 1
        given = [drawn(self.step, worker) for worker in self.workers]
        for key, weights in enumerate(self.weights):
            total = given[0][key].copy()
            for gradients in given[1:]:
                total += gradients[key]
            self.optimizer.apply(weights, total, self.state[key], self.step, 1 / len(self.workers))


class Unreadable:
    """As a torch tensor of bfloat16, which NumPy cannot read."""

    shape = (3,)

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TypeError("unsupported ScalarType BFloat16")


def same(server: ParameterServer, serial: Serial, what: str) -> None:
    for key, (weights, expected) in enumerate(zip(server.weights, serial.weights, strict=False)):
        if weights.tobytes() != expected.tobytes():
            wrong = int((weights != expected).sum())
            sys.exit(f"{what}, step {serial.step}, key {key}: {wrong} other weights than serially")


def run(comm: MPI.Intracomm, what: str, optimizer: Optimizer, **options: Any) -> None:
    """A job, step by step; some gradients are pushed before the step."""
    owners = options.get("owners", "all")
    workers = [rank for rank in range(comm.size) if owners == "all" or rank not in owners]
    serial = Serial(optimizer, workers)
    first = [tensor if comm.rank == workers[0] else tensor * 0 for tensor in drawn(99)]
    with ParameterServer(comm, first, optimizer, **options) as server:
        same(server, serial, what)
        for step in range(1, STEPS + 1):
            optimizer.lr *= 0.5  # the serial optimiser is the same object
            for key, tensor in reversed([*enumerate(drawn(step, comm.rank))]):
                if server.gradients:
                    server.gradients[key][...] = tensor
                    if (key + step) % 2:
                        server.push(key)
            server.step()
            serial.advance()
            same(server, serial, what)
        if server.steps != STEPS:
            sys.exit(f"{what}: {server.steps} steps")


def every_design() -> None:
    comm = Communicator(WORLD, transport="direct")
    shapes = [{}, {"owners": [2]}, {"owners": [0, 3]}]
    designs: list[dict[str, Any]] = [
        {},
        {"fused": False},
        {"pull": True},
        {"fused": False, "pull": True, "chunk_bytes": 4 * 2**20},
        {"shared_weights": True, "chunk_bytes": 64},
    ]
    for at, make in enumerate(OPTIMIZERS):
        for placement in shapes:
            design = designs[at]
            run(comm, f"direct {placement} {design} {make()}", make(), **placement, **design)
    for design in designs:
        run(comm, f"direct {design}", Adam(), **design)
    run(Communicator(MPI.COMM_SELF), "alone", Momentum(0.1))
    comm.Free()


def by_messages() -> None:
    """In one piece for each owner, and in more of them than are under way at once."""
    placements: list[dict[str, Any]] = [{}, {"owners": [2]}, {"owners": [0, 3]}]
    with Communicator(WORLD, transport="mpi") as comm:
        for nbytes in (messages.LEAST_BYTES, 1024):
            for make, placement in zip(OPTIMIZERS, placements * 2, strict=False):
                about = f"mpi {nbytes} {placement} {make()}"
                with mock.patch.object(messages, "LEAST_BYTES", nbytes):
                    run(comm, about, make(), chunk_bytes=1024, **placement)


def several_jobs() -> None:
    """Rank 0 owns two jobs; the workers of one do many more steps meanwhile."""
    world = Communicator(WORLD, transport="direct")
    steps = {"a": 3, "b": 40}
    jobs = {}
    for name, ranks in (("a", [0, 1]), ("b", [0, 2, 3])):
        if WORLD.rank in ranks:
            comm = world.Create_group(WORLD.group.Incl(ranks))
            jobs[name] = ParameterServer(comm, [1000], SGD(1.0), owners=[0])
    if WORLD.rank == 0:
        serve((server, steps[name]) for name, server in jobs.items())
    for name, server in jobs.items():
        for step in range(steps[name] if WORLD.rank else 0):
            server.gradients[0][...] = 1.0 if name == "a" else 2.0
            server.step()
            if (server.weights[0] != -(step + 1) * server.gradients[0][0]).any():
                sys.exit(f"job {name}, step {step}: found {server.weights[0][0]}")
        server.close()
    world.Free()


def owners_may_take_the_steps_of_their_jobs_in_different_orders() -> None:
    """Two owners of two jobs each wait in another job first; workers send to both."""
    world, servers = Communicator(WORLD, transport="mpi"), {}
    for name, ranks in (("a", [0, 1, 2]), ("b", [0, 1, 3])):
        if WORLD.rank in ranks:
            comm = world.Create_group(WORLD.group.Incl(ranks))
            servers[name] = ParameterServer(comm, [MANY_PIECES], SGD(1.0), owners=[0, 1])
    for name in ("ba", "ab", "a", "b")[WORLD.rank]:
        for gradient in servers[name].gradients:
            gradient[...] = 1.0
        servers[name].step()
    for name, server in servers.items():
        if any((weights != -1.0).any() for weights in server.weights):
            sys.exit(f"job {name} of two owners: other weights than -1")
        server.close()
    world.Free()


def refusals() -> None:
    comm = Communicator(WORLD, transport="direct")
    wrong: list[tuple[type[Exception], str, list[Any], dict[str, Any]]] = [
        (ValueError, "owners=[0, 7]: not some of the ranks 0 to 3", [3], {"owners": [0, 7]}),
        (ValueError, "chunk_bytes=100: not a positive multiple of 64", [3], {"chunk_bytes": 100}),
        (ValueError, "owners=[0, 'x']: not some", [3], {"owners": ["x", 0]}),
        (ValueError, "others left to work", [3], {"owners": np.array([0, 7])}),
        (ValueError, "chunk_bytes=64.0: not", [3], {"chunk_bytes": 64.0}),
        (OutOfMemory, "", [2**50], {}),
        (ValueError, "tensors: found none", [], {}),
        (ValueError, "shapes must be equal on all ranks", [3 + WORLD.rank // 3], {}),
        (ValueError, "found the shape (-4,)", [-4, 40], {}),
        (TypeError, "neither a shape nor an array", ["x"], {}),
        (TypeError, "neither a shape nor an array", [[0.5, 0.25]], {}),
        (TypeError, "ScalarType BFloat16", [3 if WORLD.rank else Unreadable()], {}),
    ]
    for kind, words, tensors, options in wrong:
        with refused(kind, words):
            ParameterServer(comm, tensors, SGD(1.0), **options)
    with ParameterServer(comm, np.array([3, 4]), SGD(1.0)) as server:
        assert [array.shape for array in server.weights] == [(3,), (4,)]
        not_whole: Any = 1.0
        with refused(TypeError, "interpreted as an integer"):
            server.push(not_whole)
        server.push(1)
        for key, words in ((1, "pushed in this step already"), (2, "has 2 gradients")):
            with refused(ValueError, words):
                server.push(key)
        server.step()
    with refused(HbmcommError, "is closed"):
        server.step()
    comm.Free()


def an_error_in_the_block_of_one_rank_ends_the_waits_of_others(steps: int) -> None:
    """By messages: others wait for its gradients and for its weights, or for its close."""
    comm = Communicator(WORLD, transport="mpi")
    try:
        with ParameterServer(comm, [1000, 1000], SGD(1.0), owners=[0, 1]) as server:
            server.step()
            if WORLD.rank == 3:
                raise KeyError("a mistake of the program")
            if WORLD.rank == 0 and steps:
                serve([(server, 1)])
            for _ in range(steps):
                server.step()
    except KeyError:
        if WORLD.rank != 3:
            raise
    except PeerError as error:
        if "rank 3 gave up: 'a mistake of the program'" not in str(error):
            raise
    else:
        sys.exit(f"{steps} steps and a close without rank 3")


def strangers() -> None:
    """Another user opens none of the memory that the ranks of a job share."""
    comm = Communicator(WORLD, transport="direct")
    with ParameterServer(comm, [1000], SGD(1.0)):
        if WORLD.rank == 0:
            open_as_nobody()
    comm.Free()


def open_as_nobody() -> None:
    links = [*Path("/proc/self/fd").iterdir()]  # one of them, of the folder itself, is closed now
    files = [link.name for link in links if "hbmcomm." in os.path.realpath(link)]
    if not files:
        sys.exit("no shared memory is open")
    for file in files if os.geteuid() == 0 else ():
        path = f"/proc/{os.getpid()}/fd/{file}"
        nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
        look = ["/bin/sh", "-c", f": <>{path}"]
        tried = subprocess.run(look, cwd="/", capture_output=True, text=True, **nobody)
        if "denied" not in tried.stderr:
            sys.exit(f"another user opened {path}: {tried.stderr}")


every_design()
by_messages()
several_jobs()
owners_may_take_the_steps_of_their_jobs_in_different_orders()
refusals()
strangers()
for steps in (1, 0):
    an_error_in_the_block_of_one_rank_ends_the_waits_of_others(steps)
if WORLD.rank == 0:
    print("all steps are right")
