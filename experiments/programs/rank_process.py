"""One rank's process: pinned to a CPU, ending all others when it fails."""

import ctypes
import fcntl
import os
import socket
import stat
import sys
import termios
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from mpi4py import MPI

import hbmcomm
from experiments.machine import binding, facts
from experiments.model.errors import Misplaced, WrongResult

READ_PATIENCE = 2.0  # seconds that a launcher gets to read a rank's last words
POLL = 0.005  # seconds
EXPECTED = (SystemExit, hbmcomm.HbmcommError, Misplaced, WrongResult)  # all others are defects
Where = tuple[str, str]
"""Kernel and host name of a rank."""


def pin(rank: int, how: str) -> int:
    """Pin this process, "packed" or "spread"; the CPU that it has now."""
    cpu = binding.cpu_of(rank, how, binding.cpus_by_node())
    os.sched_setaffinity(0, {cpu})
    return cpu


def position(where: Sequence[Where], rank: int) -> int:
    """The place of a rank among those under its kernel, in the order in which they take CPUs.

    On one host that is the order of ranks. Of several hosts under one kernel the first rank of each
    comes first, then the second of each, and each such round begins one host later: on few CPUs,
    neither the first ranks, which talk to other hosts, nor the ranks of one host meet on one.
    """
    here = [(peer, name) for peer, (kernel, name) in enumerate(where) if kernel == where[rank][0]]
    hosts = list(dict.fromkeys(name for _, name in here))
    seen: Counter[str] = Counter()
    turns = {}
    for peer, name in here:
        turns[peer] = seen[name], (hosts.index(name) + seen[name]) % len(hosts)
        seen[name] += 1
    return sorted(turns, key=turns.__getitem__).index(rank)


def position_here(comm: MPI.Intracomm) -> int:
    """The position of this rank; a collective."""
    return position(comm.allgather((facts.kernel(), socket.gethostname())), comm.rank)


def run(main: Callable[[Path], None], folder: Path) -> None:
    """main(), where a rank's error ends all ranks."""
    try:
        main(folder)
    except BaseException as error:
        report(MPI.COMM_WORLD.rank, error)
        await_read(sys.stderr.fileno())
        MPI.COMM_WORLD.Abort(1)


def report(rank: int, error: BaseException) -> None:
    """Print the error that ends a rank: one line, and its traceback if it is a defect."""
    if not isinstance(error, EXPECTED):
        traceback.print_exception(error)
    print(f"rank {rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def await_read(pipe: int, patience: float = READ_PATIENCE) -> None:
    """Wait until what was written to a pipe has been read: MPI_Abort may overtake it.

    MPICH's launcher hears of an abort by another way than of a rank's output, and then ends
    without what it has not read yet. Returns at once for a file or a terminal.
    """
    if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return
    deadline = time.monotonic() + patience
    unread = bytearray(ctypes.sizeof(ctypes.c_int))
    while time.monotonic() < deadline:
        fcntl.ioctl(pipe, termios.FIONREAD, unread)
        if not any(unread):
            return
        time.sleep(POLL)
