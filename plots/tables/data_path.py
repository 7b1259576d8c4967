"""The table of data paths: what each MPI chose in each arm, what was tried, what was allowed."""

from collections.abc import Callable, Iterable, Mapping

from experiments.analysis.data_path import Path, by_arm, chosen, read
from experiments.analysis.mpi_transport_log import (
    NETWORK,
    NONE,
    NOT_TOLD,
    SAID,
    SHARED_MEMORY,
    SINGLE_COPY,
)
from experiments.model.arms import HOST
from experiments.model.quantities import bytes_text
from experiments.results.result import Result
from plots.layout.labels import arm_name, mpi_name

CAPABILITIES = (
    *("chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid"),
    *("setpcap", "linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw"),
    *("ipc_lock", "ipc_owner", "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct"),
    *("sys_admin", "sys_boot", "sys_nice", "sys_resource", "sys_time", "sys_tty_config", "mknod"),
    *("lease", "audit_write", "audit_control", "setfcap", "mac_override", "mac_admin", "syslog"),
    *("wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf", "checkpoint_restore"),
)
"""By the number of their bit in a mask of the kernel: linux/capability.h."""
_FEW = 6  # so many are named; of more, those that are lacking
_SECCOMP = {"0": "off", "1": "strict", "2": "filter"}

Text = Callable[[Path, Path], str]
"""What a cell of a column shows of the data path in an arm; the second is the host's."""


def capabilities(mask: str) -> str:
    """ "none", "cap_sys_nice", "all", "all but cap_sys_module"; from hexadecimal digits.

    A text that is no such mask stays as it is.
    """
    try:
        bits = int(mask, 16)
    except ValueError:
        return mask
    here = [f"cap_{name}" for bit, name in enumerate(CAPABILITIES) if bits >> bit & 1]
    lacking = [f"cap_{name}" for bit, name in enumerate(CAPABILITIES) if not bits >> bit & 1]
    if not here:
        return "none"
    if not lacking:
        return "all"
    if len(here) > _FEW and len(lacking) <= _FEW:
        return f"all but {', '.join(lacking)}"
    return ", ".join(here)


def seccomp(mode: str) -> str:
    """The mode in /proc/self/status as "off", "strict" or "filter"."""
    return _SECCOMP.get(mode, mode)


def _chosen(way: str) -> Text:
    return lambda path, host: chosen(path, way)


def _recorded(key: str, words: Callable[[str], str] = str) -> Text:
    """Every value of a key together, in words."""
    return lambda path, host: words(text) if (text := read(path, key)) else NOT_TOLD


def _each(key: str, words: Callable[[str], str]) -> Text:
    """Each value of a key in words."""
    return lambda path, host: "; ".join(map(words, path.get(key, ()))) or NOT_TOLD


def _own_namespaces(path: Path, host: Path) -> str:
    """The namespaces that none of its launches shares with the host."""
    names = [key for key in path if key.startswith("namespaces.")]
    if not names or not host:
        return NOT_TOLD
    own = [key.partition(".")[2] for key in names if not set(path[key]) & set(host.get(key, ()))]
    return ", ".join(own) or NONE


COLUMNS: Mapping[str, Text] = {
    "shared memory": _chosen(SHARED_MEMORY),
    "single copy": _chosen(SINGLE_COPY),
    "network": _chosen(NETWORK),
    "process_vm_readv": _recorded("cma"),
    "kcmp": _recorded("kcmp"),
    "memfd of a neighbour": _recorded("memfd"),
    "/dev/shm of a neighbour": _recorded("shm"),
    "capabilities": _each("capabilities_effective", capabilities),
    "seccomp": _each("seccomp", seccomp),
    "namespaces of its own": _own_namespaces,
    "apart between ranks": _recorded("namespaces_apart"),
    "ptrace_scope": _recorded(
        "ptrace_scope", lambda text: "no Yama" if text == "not found" else text
    ),
    "size of /dev/shm": _recorded(
        "shm_bytes", lambda text: bytes_text(int(text)) if text.isdigit() else text
    ),
    "CPUs": _recorded("cpus_allowed"),
    "nodes": _recorded("mems_allowed"),
    "user": _recorded("uid", lambda text: "root" if text == "0" else text),
    "the MPI's own words": _recorded(f"chosen.{SAID}"),
}


def table(launches: Iterable[Result]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(head, one row for each MPI and arm)."""
    paths = by_arm(launches)
    return ("MPI", "arm", *COLUMNS), [
        (
            mpi_name(mpi),
            arm_name(arm),
            *(text(path, paths.get((mpi, HOST), {})) for text in COLUMNS.values()),
        )
        for (mpi, arm), path in paths.items()
    ]
