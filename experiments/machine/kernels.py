"""Which ranks run under the same kernel, and so share its CPUs and its process numbers.

Host names do not show it: containers of one machine may each have their own, and so have emulated
hosts.
"""

import socket
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mpi4py import MPI

from experiments.machine.facts import read

BOOT = Path("/proc/sys/kernel/random/boot_id")
Where = tuple[str, str]
"""Kernel and host name of a rank."""


def kernel() -> str:
    """What no other kernel has, and this one until it boots again."""
    return read(BOOT)


def position(where: Sequence[Where], rank: int) -> int:
    """The place of a rank among those under its kernel, in the order in which they take CPUs.

    On one host that is the order of ranks. Of several hosts under one kernel the first rank of each
    comes first, then the second of each, and each such round begins one host later: on few CPUs,
    neither the first ranks, which talk to other hosts, nor the ranks of one host meet on one.
    """
    kernel = where[rank][0]
    here = [(peer, name) for peer, (other, name) in enumerate(where) if other == kernel]
    hosts = list(dict.fromkeys(name for _, name in here))
    seen: Counter[str] = Counter()
    turns = {}
    for peer, name in here:
        turns[peer] = seen[name], (hosts.index(name) + seen[name]) % len(hosts)
        seen[name] += 1
    return sorted(turns, key=turns.__getitem__).index(rank)


def position_here(comm: MPI.Intracomm) -> int:
    """The position of this rank; a collective."""
    return position(comm.allgather((kernel(), socket.gethostname())), comm.rank)
