"""Rank program: an arena on a device is shared, clean, exclusive, and where the device is.

Usage: dax_arena.py DEVICE. DEVICE is a dax device, or a regular file that stands in for one where
there is none: its pages are then ordinary memory. Every rank prints "on the device" when all held.
"""

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from stand_in import MIB, STALE, size_of, use

import hbmcomm
from hbmcomm import Communicator

SIZES = (1, 1000, 70_000, 300_001)
"""Elements of 8 bytes: in a slot, lent, direct, and in many pieces."""


def plant(path: str) -> None:
    """What a user before us may have left: every byte, the table of claims and all."""
    with Path(path).open("r+b", buffering=0) as file:
        left = np.frombuffer(mmap.mmap(file.fileno(), size_of(path)), "uint64")
        left.fill(int.from_bytes(bytes([STALE]) * 8, "little"))


def another_job(path: str, world: MPI.Intracomm) -> str:
    """What another job finds that wants the device now, on all ranks; rank 0 starts it.

    The others sleep until it ends: ranks that spin take turns of 0.1 s on an emulated machine.
    """
    if world.rank:
        while not world.iprobe(source=0):
            time.sleep(0.05)
        return world.recv(source=0)
    command = [sys.executable, Path(__file__).with_name("other_job.py"), path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    output = done.stdout + done.stderr
    for rank in range(1, world.size):
        world.send(output, dest=rank)
    return output


def check_alike(comm: Any, world: Any) -> None:
    """Collectives on arrays of the device give what MPI's give on private ones."""
    rank, ranks = comm.rank, comm.size
    part = size_of(comm.device) // MPI.COMM_WORLD.size
    for n in SIZES:
        if n * 8 * ranks > part // 8:
            continue
        x, y = comm.empty(n), comm.empty(n)
        many, more = comm.empty(n * ranks), comm.empty(n * ranks)
        for start in (rank, rank + 7):  # the second time what the first left is there
            x[:] = np.arange(n) * ranks + start
            many[:] = np.arange(n * ranks) + 1000 * start
            root = world.bcast(start % ranks, 0)
            for name, send, receive, rooted in (
                ("Allreduce", x, y, {}),
                ("Allgather", x, many, {}),
                ("Alltoall", many, more, {}),
                ("Reduce_scatter_block", many, y, {}),
                ("Gather", x, more, {"root": root}),
                ("Scatter", many, y, {"root": root}),
                ("Reduce", x, y, {"root": root}),
            ):
                expected = np.array(receive)
                getattr(world, name)(np.array(send), expected, **rooted)
                getattr(comm, name)(send, receive, **rooted)
                assert np.array_equal(receive, expected), f"{name} of {n} is wrong"
            copy = np.array(x)
            world.Bcast(copy, root=root)
            comm.Bcast(x, root=root)
            assert np.array_equal(x, copy), f"Bcast of {n} is wrong"
            comm.Barrier()


def check_place(array: np.ndarray, path: str, real: bool) -> None:
    """All bytes are reported on the node that sysfs gives; dax_frames.py looks at frames."""
    node = (
        int(Path(f"/sys/bus/dax/devices/{Path(path).name}/target_node").read_text()) if real else 0
    )
    assert hbmcomm.placement(array) == {node: array.nbytes}, hbmcomm.placement(array)
    if real:
        assert hbmcomm.placement_method(array) == "device"
        assert hbmcomm.placement(array[5:-3]) == {node: array[5:-3].nbytes}
    assert hbmcomm.placement_method() != "device"


def check_derived(comm: Any, world: Any, turns: int) -> None:
    """Communicators derived from one share its device, and give back what they took of it."""
    large = comm.empty(MIB // 8)
    with comm.Dup() as twin:
        assert (twin.transport, twin.kind, twin.device) == ("direct", "dax", comm.device)
        check_alike(twin, world)
        half = twin.Split(comm.rank % 2, -comm.rank)
        check_alike(half, world.Split(comm.rank % 2, -comm.rank))
        half.Free()
    for _ in range(turns):
        with comm.Dup() as twin:
            twin.Allreduce(large, twin.empty_like(large))


def check_exclusive(path: str, world: MPI.Intracomm, owner: int) -> None:
    """Other jobs are refused the device; their error names rank 0, the process `owner`."""
    output = another_job(path, world)
    assert output.startswith(f"refused: rank 0: device={path} is in use by process"), output
    assert f"process {owner} (dax_arena.py" in output, output
    assert "had" not in output


def main(path: str) -> None:
    world = MPI.COMM_WORLD
    real = use(path)
    if world.rank == 0:
        plant(path)
    world.Barrier()
    comm = Communicator(world, device=path)
    assert (comm.kind, comm.transport, comm.device) == ("dax", "direct", path)
    first = comm.empty(3 * MIB, "u1")
    assert hbmcomm.source(first) == "arena"
    assert not first.any(), "bytes of an earlier job are visible"
    first.fill(STALE)
    check_place(first, path, real)
    check_alike(comm, world)
    # On an emulated machine few, for it is slow; elsewhere more than would fit if they stayed.
    check_derived(comm, world, 3 if real else size_of(path) // world.size // (4 * MIB))

    second = Communicator(world, device=path)  # the same ranks: the same part of the device
    second.Allreduce(first, second.empty(3 * MIB, "u1"))
    second.Free()
    if world.size > 1:  # other ranks: refused to all of them
        part = world.Create_group(world.group.Incl([0]))
        if world.rank == 0:
            Communicator(part, device=path).Free()
    check_exclusive(path, world, world.bcast(os.getpid()))
    comm.Free()
    output = another_job(path, world)  # a rank's array is left
    assert output.startswith("refused"), output
    del comm, second, first
    world.Barrier()
    output = another_job(path, world)
    assert output.endswith("all of it zero\n"), output
    with Communicator(world, device=path) as again:
        assert not again.empty(MIB, "u1").any(), "bytes of an earlier job are visible"
    print("on the device", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
