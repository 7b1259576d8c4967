"""The data paths that are open between these ranks: tried, never assumed. Collective.

A container's seccomp profile can close single-copy without a word from the MPI; a comparison that
does not record this measures the profile. Each rank tries on its neighbour, the next rank.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import resource
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.machine import facts
from experiments.machine.facts import read, shm_bytes, status

KCMP = {"x86_64": 312, "aarch64": 272}
KCMP_VM = 1
TRIED = ("cma", "kcmp", "memfd", "shm")
"""Keys of probe() that may differ from rank to rank."""
WORKS = "works"
ELSEWHERE = "not possible (another PID namespace)"
ANOTHER_MACHINE = "not possible (another machine)"
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class _Rank:
    """What a neighbour needs to try each data path on this rank.

    Attributes:
        mark: bytes that no other rank has.
        address: of the mark in its memory.
        anonymous: path of its anonymous file that holds the mark, or "".
        file: path of its file under /dev/shm that holds the mark, or "".
        namespaces: its number means it only to ranks of the same "pid".
        kernel: the first namespaces of any two kernels have the same names.
    """

    mark: bytes
    address: int
    anonymous: str
    file: str
    pid: int = field(default_factory=os.getpid)
    namespaces: dict[str, str] = field(default_factory=facts.namespaces)
    kernel: str = field(default_factory=facts.kernel)
    hostname: str = field(default_factory=socket.gethostname)


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def probe(comm: MPI.Intracomm) -> dict[str, object]:
    """What this rank may do, and which data paths to its neighbour work."""
    kernel = status()
    memlock = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return _tried(comm) | {
        "ptrace_scope": read(Path("/proc/sys/kernel/yama/ptrace_scope")),
        "uid": os.getuid(),
        "capabilities_effective": kernel.get("CapEff", "not found"),
        "capabilities_bounding": kernel.get("CapBnd", "not found"),
        "seccomp": kernel.get("Seccomp", "not found"),
        "no_new_privileges": kernel.get("NoNewPrivs", "not found"),
        "cpus_allowed": kernel.get("Cpus_allowed_list", "not found"),
        "mems_allowed": kernel.get("Mems_allowed_list", "not found"),
        "shm_bytes": shm_bytes(),
        "memory_policy": facts.memory_policy(),
        "memlock_bytes": "unlimited" if memlock == resource.RLIM_INFINITY else str(memlock),
        "namespaces": facts.namespaces(),
    }


def _tried(comm: MPI.Intracomm) -> dict[str, object]:
    mark = os.urandom(16)
    own = ctypes.create_string_buffer(mark, len(mark))
    with _anonymous(mark) as anonymous, _named(mark) as file:
        mine = _Rank(mark, ctypes.addressof(own), anonymous, file)
        ranks = comm.allgather(mine)
        neighbour = ranks[(comm.rank + 1) % comm.size]
        apart = "" if mine.kernel == neighbour.kernel else ANOTHER_MACHINE
        known = mine.namespaces["pid"] == neighbour.namespaces["pid"]
        unreachable = apart or ("" if known else ELSEWHERE)
        every = {name: {rank.namespaces[name] for rank in ranks} for name in mine.namespaces}
        outcomes: dict[str, object] = {
            "cma": unreachable or _cma(neighbour),
            "kcmp": unreachable or _kcmp(neighbour),
            "memfd": unreachable or _file(neighbour.anonymous, neighbour),
            "shm": apart or _file(neighbour.file, neighbour),
            "hostnames": str(len({rank.hostname for rank in ranks})),
            "namespaces_apart": ", ".join(n for n in every if len(every[n]) > 1) or "none",
        }
        comm.Barrier()  # the neighbour may still read this rank's memory and files
    return outcomes


def _cma(neighbour: _Rank) -> str:
    """Read the mark out of the neighbour's memory with process_vm_readv."""
    size = len(neighbour.mark)
    buffer = ctypes.create_string_buffer(size)
    local = _Iovec(ctypes.addressof(buffer), size)
    remote = _Iovec(neighbour.address, size)
    libc = ctypes.CDLL(None, use_errno=True)
    read_bytes = libc.process_vm_readv(
        neighbour.pid,
        ctypes.byref(local),
        ctypes.c_ulong(1),
        ctypes.byref(remote),
        ctypes.c_ulong(1),
        0,
    )
    if read_bytes < 0:
        return _refusal(ctypes.get_errno())
    return WORKS if buffer.raw == neighbour.mark else "refused (another process)"


def _kcmp(neighbour: _Rank) -> str:
    """Compare this process with the neighbour, as Open MPI does before it trusts CMA."""
    number = KCMP.get(platform.machine())
    if number is None:
        return f"not tried on {platform.machine()}"
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.syscall(number, os.getpid(), neighbour.pid, KCMP_VM, 0, 0)
    return _refusal(ctypes.get_errno()) if answer < 0 else WORKS


def _file(path: str, neighbour: _Rank) -> str:
    """Read a file of the neighbour; an anonymous one shares memory without /dev/shm."""
    if not path:
        return "refused (no such file can be made)"
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        return _refusal(error.errno)
    return WORKS if content == neighbour.mark else "refused (another file)"


@contextlib.contextmanager
def _anonymous(mark: bytes) -> Iterator[str]:
    """The path of an anonymous file that holds the mark; empty where none can be made."""
    try:
        descriptor = os.memfd_create("hbmcomm-probe")
    except OSError:
        yield ""
        return
    try:
        os.write(descriptor, mark)
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _named(mark: bytes) -> Iterator[str]:
    """The path of a file under /dev/shm that holds the mark; empty where none can be made."""
    path = SHARED_MEMORY / f"hbmcomm.probe.{mark.hex()}"  # tracking.SEGMENTS knows it
    try:
        try:
            path.write_bytes(mark)
        except OSError:
            yield ""
        else:
            yield str(path)
    finally:
        path.unlink(missing_ok=True)


def _refusal(number: int | None) -> str:
    return f"refused ({errno.errorcode.get(number or 0, 'unknown')})"


ASKED = {
    "Open MPI": ("btl_sm_flags",),
    "MPICH": ("MPIR_CVAR_CH4_CMA_ENABLE", "MPIR_CVAR_NOLOCAL"),
    "Intel MPI": ("MPIR_CVAR_INTEL_SHM_CMA",),
}
"""Integer control variables of each MPI. Open MPI takes the flags for put and get (2 and 4) out of
btl_sm_flags as soon as it cannot copy from one neighbour's memory at once."""

NOT_TOLD = "not told"


def report(comm: MPI.Intracomm) -> dict[str, str]:
    """The MPI's own report, and how often one message was copied; a collective.

    For the end of a launch: it sends messages of its own.

    Returns:
        "library": its name; "ranks": how many; "nodes": on how many nodes it believes them to be;
        "copies": copies(); and each of ASKED that it has.
    """
    library = MPI.get_vendor()[0]
    summary = {"library": library, "ranks": str(comm.size), "nodes": str(_nodes(comm))}
    summary["copies"] = copies(comm)
    return summary | {name: variable(name) for name in ASKED.get(library, ())}


def variable(name: str) -> str:
    """An integer control variable of the MPI that this process holds; "not told" without it."""
    library = ctypes.CDLL(MPI.__file__)  # finds the symbols of the libmpi that mpi4py is bound to
    provided = ctypes.c_int()
    if library.MPI_T_init_thread(MPI.THREAD_SINGLE, ctypes.byref(provided)):
        return NOT_TOLD
    try:
        return _value(library, name)
    finally:
        library.MPI_T_finalize()


def _value(library: ctypes.CDLL, name: str) -> str:
    index, handle, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    if library.MPI_T_cvar_get_index(name.encode(), ctypes.byref(index)):
        return NOT_TOLD
    if library.MPI_T_cvar_handle_alloc(index, None, ctypes.byref(handle), ctypes.byref(count)):
        return NOT_TOLD
    room = (ctypes.c_int * max(count.value, 2))()  # two: the type may be a 64-bit integer
    failed = library.MPI_T_cvar_read(handle, room)
    library.MPI_T_cvar_handle_free(ctypes.byref(handle))
    return NOT_TOLD if failed else str(room[0])


def _nodes(comm: MPI.Intracomm) -> int:
    """Number of groups of ranks that share memory, as the MPI sees it."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    leaders: int = comm.allreduce(int(node.rank == 0))
    node.Free()
    return leaders


SIZES = {"64 KiB": 2**16, "1 MiB": 2**20, "16 MiB": 2**24}
"""Sizes of the messages in bytes; below the first no MPI leaves its buffers."""
LEAST_PAGES = 16  # of a message: some faults belong to the MPI itself
ALONE = "not tried: one rank"


def copies(comm: MPI.Intracomm) -> str:
    """Number of copies of messages from rank 0 to rank 1; a collective.

    The first process that touches a page takes a page fault. Where the sender takes the faults, it
    copied its message into some buffer, from where the receiver copied it again. Where the receiver
    takes them, it copied straight out of the sender's memory: single copy.

    Returns:
        "one", "two" (or more: a network copies too), or where they differ, each size with its own:
        "64 KiB: two; 1 MiB: one; 16 MiB: one".
    """
    if comm.size == 1:
        return ALONE
    sizes = {name: size for name, size in SIZES.items() if size >= LEAST_PAGES * mmap.PAGESIZE}
    by_size: dict[str, str] = comm.bcast(
        {name: _copies(comm, size) for name, size in sizes.items()}
    )
    kinds = set(by_size.values())
    return kinds.pop() if len(kinds) == 1 else "; ".join(f"{n}: {k}" for n, k in by_size.items())


def _copies(comm: MPI.Intracomm, size: int) -> str:
    """How often a message of this size was copied; valid on rank 0."""
    faults = 0
    if comm.rank == 0:
        message = _untouched(size)
        comm.Send(np.ones(size, np.uint8), 1)  # the MPI touches its own buffers
        before = _faults()
        comm.Send(message, 1)
        faults = _faults() - before
    elif comm.rank == 1:
        room = np.ones(size, np.uint8)
        comm.Recv(room, 0)
        comm.Recv(room, 0)
    return "two" if 2 * faults > size // mmap.PAGESIZE else "one"


def _untouched(size: int) -> NDArray[np.uint8]:
    """Memory with untouched pages."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without huge pages
        pages.madvise(mmap.MADV_NOHUGEPAGE)  # else one fault may cover 512 pages
    return np.frombuffer(pages, np.uint8)


def _faults() -> int:
    """Minor page faults of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
