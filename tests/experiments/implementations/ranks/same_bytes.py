"""Rank program: every contender leaves the same right bytes, of every operation it has."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.implementations.contender import (
    Contender,
    ContenderMissing,
    in_place,
    nonblocking,
    of_transport,
    persistent,
    pickled,
    plain,
)
from experiments.implementations.torch_groups import TorchGroups
from experiments.implementations.trial import Trial
from experiments.measure import operations
from experiments.model.contender_names import BROKEN, CALLS
from experiments.schedule import footprint

COMM = MPI.COMM_WORLD
ELEMENTS = 300

flavour, folder = sys.argv[1:]
direct = hbmcomm.Communicator(COMM, kind="regular", transport="direct")
contenders: dict[str, Contender] = {
    "direct": plain(direct),
    "direct persistent": persistent(direct),
    "direct nonblocking": nonblocking(direct),
    "mpi": plain(COMM.Dup()),
    "mpi persistent": persistent(COMM.Dup(), BROKEN.get(flavour, ())),
    "mpi nonblocking": nonblocking(COMM.Dup()),
    "pickle": pickled(COMM.Dup()),
    "objects": pickled(of_transport(COMM, "direct")),
}
groups = TorchGroups(COMM, Path(folder), os.sched_getaffinity(0))
for name, of in groups.makers().items():
    try:
        contenders[name] = of()
    except ContenderMissing as reason:
        if COMM.rank == 0:
            print(f"{name}: {reason}")
for name in ("direct", "mpi", *groups.makers()):
    if name in contenders:
        contenders[f"{name} in place"] = in_place(contenders[name])
if "torch" in contenders:  # its own layers are timed, and no copies to another arena
    torch = importlib.import_module("torch")
    own = torch.distributed.new_group(backend="hbm")
    array = torch.from_numpy(direct.empty(ELEMENTS, "float32"))
    assert importlib.import_module("hbmcomm.torch").is_in_arena(array, own)

makers: list[Callable[[int], operations.Array]] = [
    lambda length: direct.empty(length, "float32"),
    lambda length: np.empty(length, "float32"),
]
done = []
pattern = operations.ramp(ELEMENTS * COMM.size, "float32")
for make in makers:
    for operation in CALLS:
        needed = footprint.sizes(operation, COMM.rank, COMM.size)
        send, recv = (make(messages * ELEMENTS) for messages in needed)
        for name, contender in contenders.items():
            if name.endswith("in place") and operation != "allreduce":
                continue
            ready = contender(operation, send, recv)
            if ready is None:
                continue
            trial = Trial(operation, COMM, [(send, recv)], pattern, lambda *_, r=ready: r)
            for iteration in range(3):
                trial.prepare(iteration)()
                trial.check()
            trial.close()
            done.append((name, operation))
groups.leave()
direct.Free()
if COMM.rank == 0:
    for name in contenders:
        print(f"{name}: {len({operation for who, operation in done if who == name})}")
