"""Provisional: replaced within the hour."""
import os
from dataclasses import dataclass

from hbmcomm.errors import KindUnavailable

KINDS = ("default", "regular", "interleave", "hbw", "hbw_all", "hbw_preferred", "hbw_interleave",
    "highest_bandwidth_local", "highest_bandwidth_local_preferred", "dax_kmem", "dax_kmem_all",
    "dax_kmem_preferred", "dax_kmem_interleave")


@dataclass(frozen=True)
class Kind:
    name: str
    nodes: tuple[int, ...]
    policy: str
    strict: bool
    emulated: bool
    evidence: str


def resolve(kind: str, nodes: tuple[int, ...] | None = None) -> Kind:
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
    emulated = "MEMKIND_HBW_NODES" in os.environ
    if kind != "regular" and not emulated:
        raise KindUnavailable(f"{kind}: no HBM here; MEMKIND_HBW_NODES=0 emulates it")
    return Kind(kind, nodes or (0,), "bind", kind != "regular", emulated, "provisional")


def default_kind() -> str:
    return "hbw" if "MEMKIND_HBW_NODES" in os.environ else "regular"
