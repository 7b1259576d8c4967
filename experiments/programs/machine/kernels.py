"""Which ranks run under the same kernel, and so share its CPUs and its process numbers.

Host names do not tell: containers of one machine may each have their own.
"""

from pathlib import Path

from mpi4py import MPI

from experiments.programs.machine.facts import read

BOOT = Path("/proc/sys/kernel/random/boot_id")


def kernel() -> str:
    """What no other kernel has, and this one until it boots again."""
    return read(BOOT)


def position(kernels: list[str], rank: int) -> int:
    """How many lower ranks run under a rank's kernel.

    Args:
        kernels: of each rank.
    """
    return kernels[:rank].count(kernels[rank])


def position_here(comm: MPI.Intracomm) -> int:
    """How many lower ranks share this rank's kernel; a collective."""
    return position(comm.allgather(kernel()), comm.rank)
