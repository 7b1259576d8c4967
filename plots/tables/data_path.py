"""The table of data paths: what each MPI chose in each arm, what was tried, what was allowed."""

from collections.abc import Iterable, Mapping
from typing import Any

from experiments.analysis.findings.data_path import Path, by_arm, chosen, read
from experiments.analysis.mpi_transport_log import (
    NETWORK,
    NONE,
    NOT_TOLD,
    SAID,
    SHARED_MEMORY,
    SINGLE_COPY,
)
from experiments.model.arms import HOST
from plots.layout.labels import arm_name, bytes_text, mpi_name
from plots.tables.privileges import capabilities, seccomp

HEAD = (
    "MPI",
    "arm",
    "shared memory",
    "single copy",
    "network",
    "process_vm_readv",
    "kcmp",
    "memfd of a neighbour",
    "/dev/shm of a neighbour",
    "capabilities",
    "seccomp",
    "namespaces of its own",
    "apart between ranks",
    "ptrace_scope",
    "size of /dev/shm",
    "CPUs",
    "nodes",
    "user",
    "the MPI's own words",
)


def table(launches: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(HEAD, one row for each MPI and arm)."""
    paths = by_arm(launches)
    return HEAD, [
        _row(mpi, arm, path, paths.get((mpi, HOST), {})) for (mpi, arm), path in paths.items()
    ]


def _row(mpi: str, arm: str, path: Path, host: Path) -> tuple[str, ...]:
    size = read(path, "shm_bytes")
    uid = read(path, "uid")
    scope = read(path, "ptrace_scope")
    return (
        mpi_name(mpi),
        arm_name(arm),
        *(chosen(path, way) for way in (SHARED_MEMORY, SINGLE_COPY, NETWORK)),
        *(read(path, tried) or NOT_TOLD for tried in ("cma", "kcmp", "memfd", "shm")),
        "; ".join(map(capabilities, path.get("capabilities_effective", ()))) or NOT_TOLD,
        "; ".join(map(seccomp, path.get("seccomp", ()))) or NOT_TOLD,
        _own_namespaces(path, host),
        read(path, "namespaces_apart") or NOT_TOLD,
        "no Yama" if scope == "not found" else scope or NOT_TOLD,
        bytes_text(int(size)) if size.isdigit() else size or NOT_TOLD,
        read(path, "cpus_allowed") or NOT_TOLD,
        read(path, "mems_allowed") or NOT_TOLD,
        "root" if uid == "0" else uid or NOT_TOLD,
        read(path, f"chosen.{SAID}") or NOT_TOLD,
    )


def _own_namespaces(path: Path, host: Path) -> str:
    """The namespaces that none of its launches shares with the host."""
    names = [key for key in path if key.startswith("namespaces.")]
    if not names or not host:
        return NOT_TOLD
    own = [key.partition(".")[2] for key in names if not set(path[key]) & set(host.get(key, ()))]
    return ", ".join(own) or NONE
