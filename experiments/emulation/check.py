"""The rank program that finds the nodes of every kind's memory in an emulated machine's guest.

Run as `mpiexec -n R python -m experiments.emulation.check FOLDER BYTES`, on the guest itself or in
a container there. Rank 0 writes found.json into FOLDER. verdict.py judges. The allocations, of
BYTES each, are few and small, because the guest is slow and its HBM nodes are small.
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
from experiments.emulation import memkind_alone, numa_maps
from experiments.emulation.question import FOUND, KINDS
from experiments.processes.executables import die_with_parent
from experiments.programs import rank_process

Answer = dict[str, Any]


def main(folder: Path) -> None:
    """The program of one rank."""
    die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    cpu, nbytes = rank_process.pin(comm.rank, "spread"), int(sys.argv[2])
    topology = hbmcomm.topology()
    node = topology.node_of_cpu(cpu)
    mine = {
        "rank": comm.rank,
        "cpu": cpu,
        "node": node,
        "memkind": _memkind(comm, node),
        "memory": {kind: look(comm, kind, nbytes) for kind in KINDS},
    }
    every = comm.gather(mine)
    if comm.rank == 0:
        found = {
            "topology": asdict(topology),
            "memkind_version": hbmcomm.memkind_version(),
            "ranks": every,
        }
        (folder / FOUND).write_text(json.dumps(found), encoding="utf-8")


def look(comm: MPI.Intracomm, kind: str, nbytes: int) -> Answer:
    """The nodes of a private array and of arena arrays of a kind; a collective.

    Args:
        nbytes: of each array, a multiple of the page size and the number of ranks.

    Returns:
        {"private": {"pages": {node: bytes}, "way", "witness", "source"}, "arena": {"pages", "way",
        "seen"}}: "pages" and "way" come from hbmcomm, "witness" from numa_maps for the same pages.
        "seen" comes from numa_maps: for each rank's segment, {node: bytes} that this rank has
        touched. Instead of either: {"error": the error's class, "text"}.
    """
    found: Answer = {}
    for where, ask in (("private", _private), ("arena", _arena)):
        try:
            found[where] = ask(comm, kind, nbytes)
        except hbmcomm.HbmcommError as error:
            found[where] = {"error": type(error).__name__, "text": str(error)}
    return found


def _private(comm: MPI.Intracomm, kind: str, nbytes: int) -> Answer:
    array = hbmcomm.empty(nbytes, "uint8", kind=kind)
    array[:] = comm.rank
    witness = numa_maps.of_memory(array.ctypes.data, array.nbytes)
    return _pages(array) | {"witness": witness, "source": hbmcomm.source(array)}


def _arena(comm: MPI.Intracomm, kind: str, nbytes: int) -> Answer:
    """Exchange all with all, so that every rank touches every other rank's segment."""
    with hbmcomm.Communicator(comm, kind=kind, transport="direct") as shared:
        send = shared.full(nbytes, comm.rank, "uint8")
        recv = shared.zeros(nbytes, "uint8")
        shared.Alltoall(send, recv)
        senders = np.repeat(np.arange(comm.size), nbytes // comm.size)
        if not (recv == senders).all():
            raise SystemExit(f"rank {comm.rank}: wrong bytes came through the arena ({kind})")
        mappings = numa_maps.mappings()
        own = numa_maps.containing(send.ctypes.data, mappings).file
        seen = [numa_maps.of_file(file, mappings) for file in comm.allgather(own)]
        return _pages(send) | {"seen": seen}


def _pages(array: NDArray[Any]) -> Answer:
    return {"pages": hbmcomm.placement(array), "way": hbmcomm.placement_method(array)}


def _memkind(comm: MPI.Intracomm, node: int) -> Answer | None:
    """memkind's own answers for this rank's CPU, from the first rank of each node."""
    first = comm.allgather(node).index(node)
    answers = memkind_alone.ask() if comm.rank == first else None
    comm.Barrier()
    return answers


if __name__ == "__main__":
    rank_process.run(main, Path(sys.argv[1]))
