"""Kinds of memory by memkind's names, resolved to NUMA nodes and a policy for the calling thread.

Knows what each name means and what this process may use; allocates nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hbmcomm.errors import KindUnavailable
from hbmcomm.memory.topology import procfs
from hbmcomm.memory.topology.machine import current
from hbmcomm.memory.topology.model import Node, Topology
from hbmcomm.memory.topology.sysfs import format_list, parse_list

Policy = Literal["bind", "preferred", "interleave", "default"]
Nodes = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """A kind as it stands on this machine for the calling thread.

    `bind` is strict: memory comes from `nodes` or there is an error. `preferred` spills elsewhere
    when they are full, `interleave` deals pages out over them, `default` is the system's own way.
    """

    name: str
    nodes: Nodes
    policy: Policy
    emulated: bool
    evidence: str
    """Why these nodes, in one sentence."""

    @property
    def strict(self) -> bool:
        """Whether this memory comes from `nodes` or not at all."""
        return self.policy == "bind"


@dataclass(frozen=True)
class _Meaning:
    """What a name stands for: the nodes that qualify, which of them to take, and how."""

    pool: Callable[[Topology], Nodes]
    choice: Callable[
        [Topology, Nodes, Nodes], Nodes
    ]  # (topology, pool, nodes of the thread's CPUs)
    policy: Policy


def _hbm(topology: Topology) -> Nodes:
    return topology.hbm.nodes


def _dax(topology: Topology) -> Nodes:
    """Nodes that the kmem driver made of dax devices, or that MEMKIND_DAX_KMEM_NODES names."""
    configured = os.environ.get("MEMKIND_DAX_KMEM_NODES")
    if configured:
        try:
            named = parse_list(configured)
        except ValueError:
            raise KindUnavailable(
                f"MEMKIND_DAX_KMEM_NODES={configured} is no list of nodes such as 2 or 8-9"
            ) from None
        return tuple(number for number in topology.memory_nodes if number in named)
    targets = {device.target_node for device in topology.dax if device.online}
    return tuple(number for number in topology.memory_nodes if number in targets)


def _ordinary(topology: Topology) -> Nodes:
    return tuple(node.id for node in topology.nodes if node.cpus and node.total_bytes)


def _any_memory(topology: Topology) -> Nodes:
    return topology.memory_nodes


def _all(_topology: Topology, pool: Nodes, _cpu_nodes: Nodes) -> Nodes:
    return pool


def _nearest(topology: Topology, pool: Nodes, cpu_nodes: Nodes) -> Nodes:
    return _union(topology.nearest(cpu_node, among=pool) for cpu_node in cpu_nodes)


def _largest(topology: Topology, pool: Nodes, _cpu_nodes: Nodes) -> Nodes:
    return _best(topology, pool, lambda node: node.total_bytes)


def _local(merit: Callable[[Node], float | None]) -> Callable[[Topology, Nodes, Nodes], Nodes]:
    def choice(topology: Topology, _pool: Nodes, cpu_nodes: Nodes) -> Nodes:
        return _union(_best(topology, topology.local_nodes(node), merit) for node in cpu_nodes)

    return choice


def _best(topology: Topology, among: Nodes, merit: Callable[[Node], float | None]) -> Nodes:
    """The nodes of highest merit; none where there is a choice and the merit of one is unknown."""
    merits = {number: merit(topology.node(number)) for number in among}
    if len(merits) == 1:
        return among
    known = {number: value for number, value in merits.items() if value is not None}
    if len(known) < len(merits):
        return ()
    return tuple(number for number, value in known.items() if value == max(known.values()))


def _quickness(node: Node) -> float | None:
    return -node.read_latency if node.read_latency else None


def _family(
    name: str,
    pool: Callable[[Topology], Nodes],
    choice: Callable[[Topology, Nodes, Nodes], Nodes],
) -> dict[str, _Meaning]:
    return {
        name: _Meaning(pool, choice, "bind"),
        f"{name}_preferred": _Meaning(pool, choice, "preferred"),
    }


_MEANINGS: dict[str, _Meaning] = {
    "default": _Meaning(_any_memory, _all, "default"),
    "regular": _Meaning(_ordinary, _all, "bind"),
    "interleave": _Meaning(_any_memory, _all, "interleave"),
    **_family("hbw", _hbm, _nearest),
    "hbw_all": _Meaning(_hbm, _all, "bind"),
    "hbw_interleave": _Meaning(_hbm, _all, "interleave"),
    **_family("highest_bandwidth_local", _any_memory, _local(lambda node: node.read_bandwidth)),
    **_family("lowest_latency_local", _any_memory, _local(_quickness)),
    **_family("highest_capacity", _any_memory, _largest),
    **_family("highest_capacity_local", _any_memory, _local(lambda node: node.total_bytes)),
    **_family("dax_kmem", _dax, _nearest),
    "dax_kmem_all": _Meaning(_dax, _all, "bind"),
    "dax_kmem_interleave": _Meaning(_dax, _all, "interleave"),
}
_WHATEVER_IS_ALLOWED = ("default", "regular", "interleave")

KINDS: tuple[str, ...] = tuple(_MEANINGS)
"""The names of all kinds, as memkind spells them, in lower case."""


def resolve(kind: str, nodes: Iterable[int] | None = None) -> Kind:
    """The nodes and policy of `kind` for the CPUs that the calling thread may run on.

    Args:
        kind: One of `KINDS`.
        nodes: Take exactly these nodes of the kind, strictly, near or far.

    Raises:
        ValueError: `kind` is no kind at all.
        KindUnavailable: This machine has no such memory, or this process may not use it.
    """
    wanted = None if nodes is None else tuple(sorted(set(nodes)))
    return choose(kind, current(), tuple(os.sched_getaffinity(0)), usable_nodes(), wanted)


def default_kind() -> str:
    """`hbw` where this machine has high-bandwidth memory (or emulates it), else `regular`."""
    return "hbw" if current().hbm.nodes else "regular"


def usable_nodes() -> Nodes:
    """The nodes with memory that this process may allocate on."""
    allowed = procfs.allowed_nodes(Path("/proc"))
    here = current().memory_nodes
    return here if allowed is None else tuple(number for number in here if number in allowed)


def choose(
    kind: str, topology: Topology, cpus: Nodes, allowed: Nodes, nodes: Nodes | None = None
) -> Kind:
    """`resolve` for any machine, CPUs of the thread, allowed nodes and nodes asked for."""
    meaning = _MEANINGS.get(kind)
    if meaning is None:
        raise ValueError(f"unknown kind of memory {kind!r}; known are {', '.join(KINDS)}")
    pool = meaning.pool(topology)
    if kind in _WHATEVER_IS_ALLOWED and nodes is None:
        pool = tuple(number for number in pool if number in allowed)
    if not pool:
        raise KindUnavailable(_why_none(kind, topology))
    cpu_nodes = tuple(node.id for node in topology.nodes if set(cpus) & set(node.cpus))
    chosen = meaning.choice(topology, pool, cpu_nodes) if nodes is None else nodes
    _check(kind, chosen, pool, allowed)
    policy: Policy = "bind" if nodes is not None else meaning.policy
    if kind == "regular" and nodes is None and set(chosen) >= set(allowed):
        policy = "default"  # nothing but ordinary memory here: the operating system's own way
    uses_hbm_finding = meaning.pool is _hbm
    return Kind(
        name=kind,
        nodes=chosen,
        policy=policy,
        emulated=uses_hbm_finding and topology.hbm.emulated,
        evidence=topology.hbm.rule
        if uses_hbm_finding
        else _plain_evidence(kind, chosen, cpu_nodes),
    )


def _check(kind: str, chosen: Nodes, pool: Nodes, allowed: Nodes) -> None:
    if not chosen:
        raise KindUnavailable(
            f"{kind}: no HMAT values tell which of nodes {format_list(pool)} it is; "
            "choose with nodes=, or take regular"
        )
    foreign = tuple(number for number in chosen if number not in pool)
    if foreign:
        raise KindUnavailable(
            f"{kind}: node {format_list(foreign)} is not memory of this kind; "
            f"its nodes are {format_list(pool)}"
        )
    forbidden = tuple(number for number in chosen if number not in allowed)
    if forbidden:
        raise KindUnavailable(
            f"{kind} needs node {format_list(forbidden)}, but this process may use only nodes "
            f"{format_list(allowed)} (its cpuset); widen it (docker: --cpuset-mems) "
            "or run on CPUs near an allowed node"
        )


def _why_none(kind: str, topology: Topology) -> str:
    if kind.startswith("hbw"):
        return (
            f"{kind}: {topology.hbm.rule}. To try the code path on ordinary memory, emulate HBM "
            "with MEMKIND_HBW_NODES=0; for ordinary memory ask for regular"
        )
    if kind.startswith("dax_kmem"):
        return (
            f"{kind}: no dax device is online as a NUMA node "
            f"(devices: {', '.join(device.name for device in topology.dax) or 'none'}); "
            "daxctl reconfigure-device --mode=system-ram brings one online"
        )
    return f"{kind}: this process may use none of the nodes {format_list(topology.memory_nodes)}"


def _plain_evidence(kind: str, chosen: Nodes, cpu_nodes: Nodes) -> str:
    near = format_list(cpu_nodes)
    return f"{kind} is node {format_list(chosen)} for a thread with CPUs of node {near}"


def _union(sets: Iterable[Nodes]) -> Nodes:
    return tuple(sorted({number for numbers in sets for number in numbers}))
