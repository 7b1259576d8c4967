"""Rank program: ranks that share a folder and nothing else: `apart.py FOLDER ACT MODE PLACE`.

Each rank has a /proc, PIDs and a /dev/shm of its own; FOLDER is mounted at PLACE-RANK. With MODE
"named" HBMCOMM_SHM names that, with "one" on rank 0 only, with "unnamed" on none.

With ACT "reach" they have all in common but for the user namespace of rank 1, a child of that of
rank 0: rank 0 may read private memory of rank 1, which may not read that of rank 0.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

HIDE = 'mount --bind "$1" "$2" && mount -t tmpfs tmpfs /dev/shm && shift 2 && "$@"; exit $?'
"""Without exec: the first process of a PID namespace cannot send itself SIGKILL."""
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
BYTES = 4 * 2**20


def enter(folder: str, act: str, mode: str, place: str) -> None:
    """Start this program again in namespaces of its own."""
    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    here = Path(f"{place}-{rank}")
    here.mkdir()
    if mode == "named" or (mode == "one" and rank == "0"):
        os.environ["HBMCOMM_SHM"] = str(here)
    again = [sys.executable, __file__, act, str(here)]
    words = [*ALONE, "sh", "-c", HIDE, "sh", folder, str(here)]
    if act == "reach":
        words = ["unshare", "--user", "--map-root-user"] if rank == "1" else ["env"]
    os.execvp(words[0], [*words, *again])


def main(act: str, here: str) -> None:
    from mpi4py import MPI

    import hbmcomm
    from hbmcomm.memory.handshake import Handshake

    world, folder = MPI.COMM_WORLD, Path(here)
    if act == "reach":
        reach(hbmcomm.Communicator(world, transport="direct"))
        return
    assert not list(Path("/dev/shm").glob("hbmcomm.*"))
    others = world.allgather(Path("/proc/self/ns/pid").stat().st_ino)
    assert len(set(others)) == world.size, "each rank has PIDs of its own"
    if act == "die early" and world.rank == 1:
        Handshake._map = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm = hbmcomm.Communicator(world, "regular", "direct")
    except hbmcomm.ArenaUnavailable as error:
        world.Barrier()
        print(f"rank {world.rank}: refused: {error}")
        if act != "fall back":
            return
        comm = hbmcomm.Communicator(world, "regular", "auto")
    assert not list(folder.iterdir()), "the files have no names once they are mapped"
    if act == "die":
        die(comm)
    x, y = comm.full(BYTES // 4, comm.rank + 1, "float32"), comm.zeros(BYTES // 4, "float32")
    comm.Allreduce(x, y)
    assert (y == comm.size * (comm.size + 1) / 2).all()
    with comm.numpy_memory():
        import numpy as np

        assert hbmcomm.source(np.ones(BYTES // 8)) == (None, "arena")[comm.transport == "direct"]
    again = comm.Split(comm.rank % 1)  # shares the segments
    again.Allreduce(x, y)
    again.Free()
    comm.Free()
    print(f"rank {world.rank}: {comm.transport}, {hbmcomm.placement(x)}")


def reach(comm: Any) -> None:
    """Long messages in ordinary arrays."""
    import numpy as np

    ranks = np.repeat(np.arange(comm.size, dtype="u1"), BYTES)
    for root in range(comm.size):
        own, every = np.full(BYTES, comm.rank, "u1"), np.empty_like(ranks)
        comm.Allgather(own, every)
        assert (every == ranks).all()
        comm.Gather(own, every, root)
        comm.Alltoall(ranks, every)
        assert (every == comm.rank).all()
        comm.Bcast(every, root)
        assert (every == root).all()
    print(f"rank {comm.rank}: all came")


def die(comm: object) -> None:
    """Rank 1 is killed while rank 0 waits for it."""
    import hbmcomm

    if comm.rank == 1:  # type: ignore[attr-defined]
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.Barrier()  # type: ignore[attr-defined]
    except hbmcomm.PeerError as error:
        print(f"rank 0: {error}", flush=True)
        os._exit(0)


if len(sys.argv) == 5:
    enter(*sys.argv[1:])
main(*sys.argv[1:])
