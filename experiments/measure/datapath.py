"""Which ways data can take between these ranks: tried, never assumed. Collective over the ranks.

A container's seccomp profile can close single-copy without a word from the MPI; a comparison that
does not record this measures the profile.
"""

import ctypes
import errno
import os
import platform
import resource
from pathlib import Path

from mpi4py import MPI

from experiments.measure.machine import namespaces, read, shm_bytes, status

KCMP = {"x86_64": 312, "aarch64": 272}
KCMP_VM = 1
PROBE = b"hbmcomm-"
TRIED = ("cma", "kcmp", "memfd")
"""Keys of probe() that may differ from rank to rank."""


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def probe(comm: MPI.Intracomm) -> dict[str, object]:
    """What this rank may do, and what it found trying on its neighbour."""
    kernel = status()
    memlock = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return {
        "cma": _cma(comm),
        "kcmp": _kcmp(comm),
        "memfd": _memfd(comm),
        "ptrace_scope": read(Path("/proc/sys/kernel/yama/ptrace_scope")),
        "uid": os.getuid(),
        "capabilities_effective": kernel.get("CapEff", "not found"),
        "capabilities_bounding": kernel.get("CapBnd", "not found"),
        "seccomp": kernel.get("Seccomp", "not found"),
        "no_new_privileges": kernel.get("NoNewPrivs", "not found"),
        "cpus_allowed": kernel.get("Cpus_allowed_list", "not found"),
        "mems_allowed": kernel.get("Mems_allowed_list", "not found"),
        "shm_bytes": shm_bytes(),
        "memlock_bytes": "unlimited" if memlock == resource.RLIM_INFINITY else str(memlock),
        "namespaces": namespaces(),
    }


def _cma(comm: MPI.Intracomm) -> str:
    """Read eight bytes out of the next rank's memory with process_vm_readv."""
    own = ctypes.create_string_buffer(PROBE, len(PROBE))
    pid, address = comm.allgather((os.getpid(), ctypes.addressof(own)))[(comm.rank + 1) % comm.size]
    found = ctypes.create_string_buffer(len(PROBE))
    local = _Iovec(ctypes.addressof(found), len(PROBE))
    remote = _Iovec(address, len(PROBE))
    libc = ctypes.CDLL(None, use_errno=True)
    read_bytes = libc.process_vm_readv(
        pid, ctypes.byref(local), ctypes.c_ulong(1), ctypes.byref(remote), ctypes.c_ulong(1), 0
    )
    answer = "works" if read_bytes == len(PROBE) and found.raw == PROBE else _refusal()
    comm.Barrier()  # the neighbour still reads `own`
    return answer


def _kcmp(comm: MPI.Intracomm) -> str:
    """Compare this process with the next rank's, as Open MPI does before it trusts CMA."""
    number = KCMP.get(platform.machine())
    pid = comm.allgather(os.getpid())[(comm.rank + 1) % comm.size]
    if number is None:
        return f"not tried on {platform.machine()}"
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.syscall(number, os.getpid(), pid, KCMP_VM, 0, 0)
    return _refusal() if answer < 0 else "works"


def _memfd(comm: MPI.Intracomm) -> str:
    """Open the next rank's anonymous file, by which ranks share memory without /dev/shm."""
    descriptor, answer = -1, "works"
    try:
        descriptor = os.memfd_create("hbmcomm-probe")
        os.write(descriptor, PROBE)
    except OSError as error:
        answer = _refusal(error.errno)
    pid, theirs = comm.allgather((os.getpid(), descriptor))[(comm.rank + 1) % comm.size]
    try:
        found = Path(f"/proc/{pid}/fd/{theirs}").read_bytes()
        answer = answer if found == PROBE else "refused (another file)"
    except OSError as error:
        answer = _refusal(error.errno)
    comm.Barrier()  # the neighbour still reads `descriptor`
    if descriptor >= 0:
        os.close(descriptor)
    return answer


def _refusal(number: int | None = None) -> str:
    """In the system's words: of an error number, or of the last call through ctypes."""
    code = ctypes.get_errno() if number is None else number
    return f"refused ({errno.errorcode.get(code, 'unknown')})"
