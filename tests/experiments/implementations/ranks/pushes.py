"""Rank program: every contender pushes the same tensors, and its check sees what is wrong."""

import importlib.util
import sys
from pathlib import Path

from mpi4py import MPI

from experiments.implementations import push
from experiments.implementations.contender import ContenderMissing
from experiments.model.workloads import PUSH, WORKLOADS

COMM = MPI.COMM_WORLD
SIZES = (5000, 1, 300)
OWN = {"region": 0, "grpc": 5, "grpc-tuned": 1, "pack-mpi": 2, "gloo-send": 0}
"""Copies of each byte that a contender makes by calls of its own."""


if COMM.size != 2:
    try:
        push.make("region", COMM, Path())
    except ContenderMissing as reason:
        print(f"right: {reason}")
    raise SystemExit

for name in WORKLOADS[PUSH].contenders:
    if name == "gloo-send" and importlib.util.find_spec("torch") is None:
        continue
    one = push.Push(COMM, push.opener(name, COMM, Path(sys.argv[1]))(SIZES), SIZES)
    assert one.wrong() == 0, name
    before = one.line.copied
    for _ in range(3):
        one.step()
    COMM.Barrier()
    copied = COMM.allreduce(one.line.copied - before) / (3 * 4 * sum(SIZES))
    assert OWN[name] <= copied < OWN[name] + 0.1, (name, copied)
    received = one.line.receive
    one.line.receive = lambda number, receive=received: receive(number) + 1
    assert COMM.allreduce(one.wrong()) == sum(SIZES), name
    one.line.close()
    if COMM.rank == 0:
        print(f"right: {name}")
