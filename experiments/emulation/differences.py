"""How a guest differs from what the description of its machine lets expect. Pure.

check.py looks, in the guest. Both sides of a comparison are texts: the seen one equals the expected
one where it is within the tolerance.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from experiments.emulation.machine import MIB, PAGE, Description, Found
from experiments.model.quantities import list_text

KINDS = ("regular", "hbw", "hbw_preferred", "hbw_interleave", "hbw_all")
LEAST_MEMORY = 0.8
"""Least share of a node's memory; the kernel keeps some, much of a small node with CPUs."""
PAGES = 128
"""Pages of an array, at least: some for each of 16 nodes, few because HBM nodes are small."""
METHOD = "move_pages"
"""The kernel's exact answer for each page, of those that hbmcomm may go by."""


class Fact(NamedTuple):
    """One thing that a description lets expect, and what a guest shows."""

    what: str
    expected: str
    seen: str


def ranks_of(machine: Description) -> int:
    """One rank for each node with CPUs, and two at least, because ranks must share memory."""
    return max(2, len(machine.cpu_nodes))


def bytes_of(machine: Description) -> int:
    """Bytes of each array: the same number of whole pages for each rank."""
    ranks = ranks_of(machine)
    return -(-PAGES // ranks) * ranks * PAGE


def differences(
    machine: Description, report: Mapping[str, Any], online: bool = False
) -> tuple[Fact, ...]:
    """What is not as described; empty where all is.

    Args:
        report: what check.py wrote.
        online: the dax devices have been brought online.
    """
    wanted = machine.found_online if online else machine.found
    if wanted is None:
        raise ValueError(f"{machine.name} has no dax device that could be online")
    topology, ranks = report["topology"], report["ranks"]
    facts = (
        *_nodes(machine, topology["nodes"], online),
        *_devices(machine, topology["dax"], online),
        _hbm(wanted, topology["hbm"]),
        _ranks(machine, ranks),
        _memkind(machine, wanted, ranks),
        *_memory(machine, wanted, ranks),
    )
    return tuple(fact for fact in facts if fact.expected != fact.seen)


def _nodes(
    machine: Description, shown: Sequence[Mapping[str, Any]], online: bool
) -> Iterator[Fact]:
    """CPUs, memory, distances and bandwidth of each node that has memory now."""
    sizes = {node.id: node.memory_bytes for node in machine.nodes if node.memory_bytes}
    sizes |= {device.node: device.online_bytes for device in machine.dax if online}
    sizes = dict(sorted(sizes.items()))
    expected: dict[int, str] = {}
    seen: dict[int, str] = {}
    for number, size in sizes.items():
        node, row = machine.nodes[number], machine.distances.rows[number]
        near = [row[other] for other in sizes]
        expected[number] = _node(node.cpus, f"{size // MIB} MiB", near, machine.bandwidth(node))
    for one in shown:
        size, total = sizes.get(one["id"], 0), one["total_bytes"]
        is_right = LEAST_MEMORY * size <= total <= size
        memory = f"{size // MIB} MiB" if is_right else f"{total:,} bytes"
        near = list(one["distances"].values())
        seen[one["id"]] = _node(one["cpus"], memory, near, one["read_bandwidth"])
    return _by_name("node", expected, seen)


def _node(cpus: Iterable[int], memory: str, distances: list[int], rate: float | None) -> str:
    speed = f"{rate / MIB:.0f} MiB/s" if rate else "no bandwidth"
    return f"CPUs {list_text(cpus)}; {memory}; distances {distances}; {speed}"


def _devices(
    machine: Description, shown: Sequence[Mapping[str, Any]], online: bool
) -> Iterator[Fact]:
    text = "{} MiB of node {}, online: {}".format
    expected = {
        device.name: text(device.device_bytes // MIB, device.node, online) for device in machine.dax
    }
    seen = {
        device["name"]: text(device["size_bytes"] // MIB, device["target_node"], device["online"])
        for device in shown
    }
    return _by_name("device", expected, seen)


def _by_name(thing: str, expected: Mapping[Any, str], seen: Mapping[Any, str]) -> Iterator[Fact]:
    for name in {**expected, **seen}:
        yield Fact(f"{thing} {name}", expected.get(name, "none"), seen.get(name, "none"))


def _hbm(wanted: Found, shown: Mapping[str, Any]) -> Fact:
    """The nodes of HBM, each by the evidence of the description."""
    decided = wanted.evidence in shown["rule"] and not shown["emulated"]
    proved = all(
        any(
            text.startswith(f"node {node}: ") and wanted.evidence in text
            for text in shown["evidence"]
        )
        for node in wanted.hbm
    )
    why = wanted.evidence if decided and proved else "; ".join([shown["rule"], *shown["evidence"]])
    return Fact(
        "HBM",
        f"nodes {list_text(wanted.hbm)}: {wanted.evidence}",
        f"nodes {list_text(shown['nodes'])}: {why}",
    )


def _ranks(machine: Description, ranks: Sequence[Mapping[str, Any]]) -> Fact:
    """Each rank runs on a CPU of its node, and all nodes with CPUs have ranks."""
    home = {cpu: node.id for node in machine.cpu_nodes for cpu in node.cpus}
    expected = f"{ranks_of(machine)}, on CPUs of nodes {list_text(set(home.values()))}"
    seen = f"{len(ranks)}, on CPUs of nodes {list_text({rank['node'] for rank in ranks})}"
    if any(home.get(rank["cpu"]) != rank["node"] for rank in ranks):
        seen = "; ".join(f"on CPU {rank['cpu']}, node {rank['node']}" for rank in ranks)
    return Fact("ranks", expected, seen)


def _memkind(machine: Description, wanted: Found, ranks: Sequence[Mapping[str, Any]]) -> Fact:
    """memkind's own MEMKIND_HBW, asked from each node with CPUs."""
    answers = {rank["node"]: rank["memkind"] for rank in ranks if rank["memkind"] is not None}
    errors = sorted({answer for answer in answers.values() if isinstance(answer, str)})
    nodes = {node for answer in answers.values() if not isinstance(answer, str) for node in answer}
    asked = f", asked from nodes {list_text(node.id for node in machine.cpu_nodes)}"
    return Fact(
        "memkind's own hbw",
        f"nodes {list_text(wanted.memkind)}{asked}",
        "; ".join(errors) or f"nodes {list_text(nodes)}, asked from nodes {list_text(answers)}",
    )


def _memory(
    machine: Description, wanted: Found, ranks: Sequence[Mapping[str, Any]]
) -> Iterator[Fact]:
    """Arrays of each kind, private and in the arena, on the nodes that the kind promises a rank.

    A strict kind of several nodes fills the nearest first, as the kernel does; so does `regular`.
    """
    size = bytes_of(machine)
    for kind, (number, rank), where in product(KINDS, enumerate(ranks), ("private", "arena")):
        answer, nodes = rank["memory"][kind][where], wanted.hbm
        if kind == "regular":
            nodes = (rank["node"],)
        elif kind != "hbw_interleave":
            nodes = tuple(node.id for node in machine.local_hbm(rank["node"], wanted.hbm))
        if nodes:
            even = ", evenly" if kind == "hbw_interleave" else ""
            expected = f"{size:,} bytes on nodes {list_text(nodes)}{even}, by {METHOD}"
            is_right = answer.get("way") == METHOD and _on(nodes, bool(even), size, answer["pages"])
        else:
            expected = f"KindUnavailable: {wanted.evidence}"
            is_right = (
                answer.get("error") == "KindUnavailable" and wanted.evidence in answer["text"]
            )
        if "error" in answer:
            seen = f"{answer['error']}: {answer['text']}"
        else:
            pages = (f"{nbytes:,} bytes on node {node}" for node, nbytes in answer["pages"].items())
            seen = f"{', '.join(pages)}, by {answer['way']}"
        yield Fact(f"{kind}, {where}, rank {number}", expected, expected if is_right else seen)


def _on(nodes: Sequence[int], evenly: bool, size: int, by_node: Mapping[str, int]) -> bool:
    """Whether all bytes are on these nodes; interleaved, in equal shares but for a page."""
    pages = {int(node): nbytes for node, nbytes in by_node.items()}
    share = size / len(nodes)
    return (
        sum(pages.values()) == size
        and pages.keys() <= set(nodes)
        and not (evenly and any(abs(pages.get(node, 0) - share) > PAGE for node in nodes))
    )
