"""The rank program that sees a guest's topology and where its memory of each kind is.

`mpiexec -n R python -m experiments.emulation.check FILE BYTES KIND...`, on the guest itself or in a
container there. Rank 0 writes FILE; differences.py compares. The arrays, of BYTES each, are few and
small, because the guest is slow and its HBM nodes are small.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import hbmcomm
from experiments.emulation import memkind_alone
from experiments.processes.executables import captured, die_with_parent
from experiments.programs import rank_process

DEADLINE = 120.0  # seconds for memkind's answer; emulated machines are slow
Answer = dict[str, Any]


def main(file: Path) -> None:
    """The program of one rank."""
    die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    nbytes, kinds = int(sys.argv[2]), sys.argv[3:]
    cpu, topology = rank_process.pin(comm.rank, "spread"), hbmcomm.topology()
    node = topology.node_of_cpu(cpu)
    is_first = comm.allgather(node).index(node) == comm.rank
    memkind = _memkind() if is_first else None
    memory = {kind: look(comm, kind, nbytes) for kind in kinds}
    ranks = comm.gather({"cpu": cpu, "node": node, "memkind": memkind, "memory": memory})
    if ranks:
        report = {"topology": asdict(topology), "ranks": ranks}
        file.write_text(json.dumps(report), encoding="utf-8")


def look(comm: MPI.Intracomm, kind: str, nbytes: int) -> Answer:
    """The nodes of a private array and of arena arrays of a kind; a collective.

    Args:
        nbytes: of each array, a multiple of the page size and the number of ranks.

    Returns:
        {"private": {"pages": {node: bytes}, "way": the method that knows}, "arena": as private};
        instead of either {"error": the error's class, "text"}.
    """
    answers: Answer = {}
    for where, ask in (("private", _private), ("arena", _arena)):
        try:
            answers[where] = ask(comm, kind, nbytes)
        except hbmcomm.HbmcommError as error:
            answers[where] = {"error": type(error).__name__, "text": str(error)}
    return answers


def _private(comm: MPI.Intracomm, kind: str, nbytes: int) -> Answer:
    array = hbmcomm.empty(nbytes, "uint8", kind=kind)
    array[:] = comm.rank
    return _pages(array)


def _arena(comm: MPI.Intracomm, kind: str, nbytes: int) -> Answer:
    """Of an array each part of which has come through the arena from another rank."""
    with hbmcomm.Communicator(comm, kind=kind, transport="direct") as shared:
        send = shared.full(nbytes, comm.rank, "uint8")
        recv = shared.zeros(nbytes, "uint8")
        shared.Alltoall(send, recv)
        senders = np.repeat(np.arange(comm.size), nbytes // comm.size)
        if not (recv == senders).all():
            raise SystemExit(f"rank {comm.rank}: wrong bytes came through the arena ({kind})")
        return _pages(recv)


def _pages(array: NDArray[Any]) -> Answer:
    return {"pages": hbmcomm.placement(array), "way": hbmcomm.placement_method(array)}


def _memkind() -> list[int] | str:
    """The nodes of memkind's own HBM for this rank's CPU, or why there is no answer."""
    program = [sys.executable, "-P", "-m", memkind_alone.__name__]
    done = captured(program, timeout=DEADLINE)
    if done.returncode:
        return " ".join([f"ended with {done.returncode}", *done.stderr.strip().splitlines()[-1:]])
    nodes: list[int] = json.loads(done.stdout)
    return nodes


if __name__ == "__main__":
    rank_process.run(main, Path(sys.argv[1]))
