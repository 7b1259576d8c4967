"""Kinds of memory by memkind's names, resolved to NUMA nodes and a policy for the calling thread.

Knows the meaning of each name and the nodes that this process may use; allocates nothing.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from hbmcomm.errors import KindUnavailable
from hbmcomm.memory import kernel, procfs
from hbmcomm.memory.kernel import Policy
from hbmcomm.memory.machine import current
from hbmcomm.memory.sysfs import INTERLEAVE_WEIGHTS, format_list, parse_list
from hbmcomm.memory.topology import Node, Topology

Nodes = tuple[int, ...]
MOST_CHOICES = 64


@dataclass(frozen=True)
class Kind:
    """A kind, resolved on this machine for the calling thread.

    `bind` is strict: memory comes from `nodes` or there is an error. `preferred` spills to other
    nodes when they are full, `interleave` spreads pages over them, `weighted_interleave` in
    proportion to the kernel's weights of the nodes, `default` is the system's default.
    """

    name: str
    nodes: Nodes
    policy: Policy
    emulated: bool
    evidence: str
    """Why these nodes, in one sentence."""

    @property
    def strict(self) -> bool:
        """Whether this memory comes from `nodes` only."""
        return self.policy == "bind"

    @property
    def spread(self) -> bool:
        """Whether neighbouring pages are on different nodes; a huge page would be on one."""
        return self.policy in ("interleave", "weighted_interleave")


@dataclass(frozen=True)
class _Meaning:
    """The meaning of a name: the candidate nodes, the selection of nodes among them, the policy."""

    candidates: Callable[[Topology], Nodes]
    select: Callable[[Topology, Nodes, Nodes], Nodes]
    """From the topology, the candidates, and the nodes of the thread's CPUs."""
    policy: Policy


_hbm, _any_memory = attrgetter("hbm.nodes"), attrgetter("memory_nodes")


def _dax(topology: Topology) -> Nodes:
    """Nodes that the kmem driver created from dax devices, or that MEMKIND_DAX_KMEM_NODES names."""
    configured = os.environ.get("MEMKIND_DAX_KMEM_NODES")
    if configured:
        try:
            named = parse_list(configured)
        except ValueError:
            raise KindUnavailable(
                f"MEMKIND_DAX_KMEM_NODES={configured} is not a list of nodes; write "
                "one such as 2 or 8-9"
            ) from None
        missing = tuple(number for number in named if number not in topology.memory_nodes)
        if missing:
            raise KindUnavailable(
                f"MEMKIND_DAX_KMEM_NODES={configured} names node {format_list(missing)}; the nodes "
                f"with memory here are {format_list(topology.memory_nodes)}"
            )
        return _among(topology.memory_nodes, named)
    targets = {device.target_node for device in topology.dax if device.online}
    return _among(topology.memory_nodes, targets)


def _ordinary(topology: Topology) -> Nodes:
    return tuple(node.id for node in topology.nodes if node.cpus and node.total_bytes)


def _all(_topology: Topology, candidates: Nodes, _cpu_nodes: Nodes) -> Nodes:
    return candidates


def _nearest(topology: Topology, candidates: Nodes, cpu_nodes: Nodes) -> Nodes:
    return _union(topology.nearest(cpu_node, among=candidates) for cpu_node in cpu_nodes)


def _largest(topology: Topology, candidates: Nodes, _cpu_nodes: Nodes) -> Nodes:
    return _best(topology, candidates, lambda node: node.total_bytes)


def _local(merit: Callable[[Node], float | None]) -> Callable[[Topology, Nodes, Nodes], Nodes]:
    def select(topology: Topology, _candidates: Nodes, cpu_nodes: Nodes) -> Nodes:
        return _union(_best(topology, topology.local_nodes(node), merit) for node in cpu_nodes)

    return select


def _beside(topology: Topology, _candidates: Nodes, cpu_nodes: Nodes) -> Nodes:
    """All memory that belongs to the nodes of the CPUs, such as the DRAM and the HBM of a tile."""
    return _union(topology.local_nodes(node) for node in cpu_nodes)


def _best(topology: Topology, among: Nodes, merit: Callable[[Node], float | None]) -> Nodes:
    """The nodes of highest merit; none where the merit of one of several nodes is unknown."""
    merits = {number: merit(topology.node(number)) for number in among}
    if len(merits) == 1:
        return among
    known = {number: value for number, value in merits.items() if value is not None}
    if len(known) < len(merits):
        return ()
    return tuple(number for number, value in known.items() if value == max(known.values()))


def _speed(node: Node) -> float | None:
    return -node.read_latency if node.read_latency else None


def _family(
    name: str,
    candidates: Callable[[Topology], Nodes],
    select: Callable[[Topology, Nodes, Nodes], Nodes],
) -> dict[str, _Meaning]:
    return {
        name: _Meaning(candidates, select, "bind"),
        f"{name}_preferred": _Meaning(candidates, select, "preferred"),
    }


_MEANINGS: dict[str, _Meaning] = {
    "default": _Meaning(_any_memory, _all, "default"),
    "regular": _Meaning(_ordinary, _all, "bind"),
    "interleave": _Meaning(_any_memory, _all, "interleave"),
    "weighted_interleave": _Meaning(_any_memory, _all, "weighted_interleave"),
    "weighted_interleave_local": _Meaning(_any_memory, _beside, "weighted_interleave"),
    **_family("hbw", _hbm, _nearest),
    "hbw_all": _Meaning(_hbm, _all, "bind"),
    "hbw_interleave": _Meaning(_hbm, _all, "interleave"),
    **_family("highest_bandwidth_local", _any_memory, _local(lambda node: node.read_bandwidth)),
    **_family("lowest_latency_local", _any_memory, _local(_speed)),
    **_family("highest_capacity", _any_memory, _largest),
    **_family("highest_capacity_local", _any_memory, _local(lambda node: node.total_bytes)),
    **_family("dax_kmem", _dax, _nearest),
    "dax_kmem_all": _Meaning(_dax, _all, "bind"),
    "dax_kmem_interleave": _Meaning(_dax, _all, "interleave"),
}
_LIMITED_TO_ALLOWED = ("default", "regular", "interleave", "weighted_interleave")

KINDS: tuple[str, ...] = tuple(_MEANINGS)
"""The names of all kinds, as memkind spells them, in lower case; memkind has none that are
weighted."""


def resolve(kind: str, nodes: Iterable[int] | None = None) -> Kind:
    """The nodes and policy of `kind` for the CPUs that the calling thread may run on.

    Args:
        kind: One of `KINDS`.
        nodes: Use exactly these nodes of the kind, strictly, at any distance.

    Raises:
        TypeError: `nodes` is not a list of numbers.
        ValueError: `kind` is not the name of a kind, or `nodes` is empty.
        KindUnavailable: This machine has no such memory, or this process may not use it.
    """
    if not isinstance(kind, str):  # a list could be no key of a mapping
        raise _unknown(kind)
    wanted = None if nodes is None else tuple(sorted(set(node_numbers(nodes))))
    here = current()
    return _chosen(kind, here, tuple(os.sched_getaffinity(0)), _usable_nodes(here), wanted)


def node_numbers(nodes: Iterable[int]) -> Nodes:
    """The numbers of the nodes that a user asks for; errors as for `resolve`."""
    try:
        numbers = tuple(operator.index(number) for number in nodes)
    except TypeError:
        raise TypeError(
            f"nodes={nodes!r}: not a list of NUMA nodes; give one such as [0]"
        ) from None
    if not numbers:
        raise ValueError(f"nodes={nodes!r}: no NUMA node; give one such as [0], or leave nodes out")
    return numbers


_choices: dict[tuple[object, ...], tuple[Topology, Kind]] = {}
"""Kinds by all that they follow from; the topology is kept because its identity is a part of it."""


def _chosen(
    kind: str, topology: Topology, cpus: Nodes, allowed: Nodes, nodes: Nodes | None
) -> Kind:
    """What choose() finds, remembered: a program makes many arrays of one kind."""
    key = kind, id(topology), cpus, allowed, nodes
    choice = _choices.get(key)
    if choice is None:
        if len(_choices) >= MOST_CHOICES:  # threads of a program may run on many sets of CPUs
            _choices.clear()
        choice = _choices[key] = topology, choose(kind, topology, cpus, allowed, nodes)
    return choice[1]


def default_kind() -> str:
    """`hbw` where this machine has high-bandwidth memory (or emulates it), else `regular`.

    Raises:
        KindUnavailable: MEMKIND_HBW_NODES names no nodes of this machine.
    """
    hbm = current().hbm
    if not hbm.nodes and os.environ.get("MEMKIND_HBW_NODES", "").strip():
        raise KindUnavailable(f"{hbm.rule}; correct it, or unset it")
    return "hbw" if hbm.nodes else "regular"


def usable_nodes() -> Nodes:
    """The nodes with memory that this process may allocate on."""
    return _usable_nodes(current())


def _usable_nodes(here: Topology) -> Nodes:
    try:
        allowed: Nodes | None = kernel.allowed_nodes()
    except OSError:  # as in a container with Docker's default rules
        allowed = procfs.allowed_nodes(Path("/proc"))
    return here.memory_nodes if allowed is None else _among(here.memory_nodes, allowed)


def choose(
    kind: str, topology: Topology, cpus: Nodes, allowed: Nodes, nodes: Nodes | None = None
) -> Kind:
    """The kind on any machine, given the thread's CPUs, the allowed and the requested nodes."""
    meaning = _MEANINGS.get(kind)
    if meaning is None:
        raise _unknown(kind)
    candidates = meaning.candidates(topology)
    if nodes is None and kind in _LIMITED_TO_ALLOWED:
        candidates = _among(candidates, allowed)
    if not candidates:
        raise KindUnavailable(_why_none(kind, topology))
    cpu_nodes = tuple(node.id for node in topology.nodes if set(cpus) & set(node.cpus))
    if nodes is None:
        chosen, policy = meaning.select(topology, candidates, cpu_nodes), meaning.policy
        if kind == "regular" and set(chosen) >= set(allowed):
            policy = "default"  # all nodes are ordinary memory: binding would change nothing
    else:
        chosen, policy = nodes, "bind"
    _check(kind, chosen, candidates, allowed)
    uses_hbm_finding = meaning.candidates is _hbm
    evidence = topology.hbm.rule if uses_hbm_finding else _evidence(kind, chosen, cpu_nodes)
    if policy == "weighted_interleave":
        evidence += f", {_weights(kind, topology, chosen)}"
    return Kind(
        name=kind,
        nodes=chosen,
        policy=policy,
        emulated=uses_hbm_finding and topology.hbm.emulated,
        evidence=evidence,
    )


def _unknown(kind: object) -> ValueError:
    return ValueError(f"unknown kind of memory {kind!r}; known are {', '.join(KINDS)}")


def _check(kind: str, chosen: Nodes, candidates: Nodes, allowed: Nodes) -> None:
    if not chosen:
        raise KindUnavailable(
            f"{kind}: no HMAT values show which of nodes {format_list(candidates)} it is; "
            "choose with nodes=, or take regular"
        )
    foreign = tuple(number for number in chosen if number not in candidates)
    if foreign:
        raise KindUnavailable(
            f"{kind}: node {format_list(foreign)} is not memory of this kind; "
            f"its nodes are {format_list(candidates)}"
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
    return (
        f"{kind}: this process may use none of the nodes {format_list(topology.memory_nodes)}; "
        "widen its cpuset (docker: --cpuset-mems)"
    )


def _evidence(kind: str, chosen: Nodes, cpu_nodes: Nodes) -> str:
    near = format_list(cpu_nodes)
    return f"{kind} is node {format_list(chosen)} for a thread with CPUs of node {near}"


def _weights(kind: str, topology: Topology, chosen: Nodes) -> str:
    weights = [topology.node(number).interleave_weight for number in chosen]
    if None in weights:
        raise KindUnavailable(
            f"{kind}: this kernel has no weights for node {format_list(chosen)} "
            f"(/sys/{INTERLEAVE_WEIGHTS}); they need Linux 6.9 or newer: take interleave, or hbw"
        )
    return f"with the weights {':'.join(map(str, weights))} of /sys/{INTERLEAVE_WEIGHTS}"


def _among(numbers: Nodes, wanted: Container[int]) -> Nodes:
    """The nodes that are wanted, in their order."""
    return tuple(number for number in numbers if number in wanted)


def _union(sets: Iterable[Nodes]) -> Nodes:
    return tuple(sorted({number for numbers in sets for number in numbers}))
