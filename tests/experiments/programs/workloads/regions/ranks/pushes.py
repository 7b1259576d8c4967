"""Rank program: every contender pushes the same tensors, and its check sees what is wrong."""

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from mpi4py import MPI

from experiments.model.systems.regions import PUSH, PUSHED_NETWORKS
from experiments.model.workloads import WORKLOADS
from experiments.programs.contenders.contender import ContenderMissing
from experiments.programs.workloads.regions import push

COMM = MPI.COMM_WORLD
SIZES = (5000, 1, 300)
OWN = {"region": 0, "grpc": 5, "grpc-tuned": 1, "pack-mpi": 2, "gloo-send": 0}
"""Copies of each byte that a contender makes by calls of its own."""
LEAST = {"region": 0, "grpc": 8, "grpc-tuned": 4, "pack-mpi": 3, "gloo-send": 2}
"""Copies of each byte in all."""


def changed(tensor: Any) -> Any:
    return tensor + 1


if COMM.size != 2:
    try:
        push.make("region", COMM, Path())
    except ContenderMissing as reason:
        print(f"right: {reason}")
    raise SystemExit

for network in PUSHED_NETWORKS:
    assert 4 * sum(push.lengths(network, 0)) == WORKLOADS[network].nbytes
assert push.lengths(PUSH, 7) == [7]

folder = Path(COMM.bcast(tempfile.mkdtemp() if COMM.rank == 0 else None))
for name in WORKLOADS[PUSH].contenders:
    if name == "gloo-send" and importlib.util.find_spec("torch") is None:
        continue
    one = push.Push(COMM, push.opener(name, COMM, folder)(SIZES), SIZES)
    assert one.wrong() == 0, name
    before = one.line.copies.nbytes
    for _ in range(3):
        one.step()
    COMM.Barrier()
    copied = COMM.allreduce(one.line.copies.nbytes - before) / (3 * 4 * sum(SIZES))
    assert OWN[name] <= copied < OWN[name] + 0.1, (name, copied)
    assert copied + one.line.transfers >= LEAST[name], (name, copied)
    received = one.line.receive
    one.line.receive = lambda number, receive=received: changed(receive(number))  # type: ignore[method-assign,misc]
    assert COMM.allreduce(one.wrong()) == sum(SIZES), name
    one.line.close()
    if COMM.rank == 0:
        print(f"right: {name}")
