"""Whether what check.py found is what a machine description says. Pure: values in, rows out."""

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.emulated import placed
from experiments.emulated.model import MIB, Description, Found, Node
from experiments.emulated.question import HBW_KINDS, KINDS, NBYTES
from experiments.measure.machine import parse_list

LEAST_MEMORY = 0.8
"""Of a node's memory; the kernel keeps a part for itself, of a small node with CPUs a large one."""
THRESHOLD = 204800 * MIB
"""bytes/s from which memory is high-bandwidth to memkind (its MEMKIND_HBW_THRESHOLD)."""
LONGEST = 90  # letters of a refusal in a table
MARKS = {True: ("ok", "green"), False: ("WRONG", "bold red")}


@dataclass(frozen=True)
class Row:
    """One thing that must be so.

    Attributes:
        why: where the machine rightly differs from what one would think, the reason.
    """

    what: str
    expected: str
    found: str
    ok: bool
    why: str = ""


def rows(
    description: Description, found: Mapping[str, Any], online: bool = False
) -> tuple[Row, ...]:
    """All that the description says against what was found.

    Args:
        found: the content of question.FOUND.
        online: the dax devices have been brought online.
    """
    told = description.found_online if online else description.found
    if told is None:
        raise ValueError(f"{description.name} has no dax device that could be online")
    nodes = tuple(node for node in description.nodes if node.memory_bytes or online)
    return (
        *_topology(description, nodes, found["topology"]),
        *_devices(description, found["topology"], online),
        *_detection(told, found["topology"]["hbm"]),
        *_memkind(description, nodes, told, found["ranks"]),
        *_ranks(description, found["ranks"]),
        *_memory(description, told, found["ranks"]),
    )


def to_table(found: Sequence[Row], width: int | None = None) -> str:
    """The rows as a table for a terminal, and a line that sums up."""
    table = Table(box=None, pad_edge=False)
    for name in ("", "what", "expected", "found"):
        table.add_column(name, overflow="fold")
    for row in found:
        shown = Text(row.found)
        if row.why:
            shown.append(f"\n{row.why}", style="dim")
        table.add_row(Text(*MARKS[row.ok]), Text(row.what), Text(row.expected), shown)
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False)
    console.print(table)
    wrong = sum(not row.ok for row in found)
    console.print(f"{wrong} of {len(found)} wrong" if wrong else f"all {len(found)} right")
    return text.getvalue()


def _same(what: str, expected: str, found: str) -> Row:
    return Row(what, expected, found, expected == found)


def _topology(
    description: Description, nodes: Sequence[Node], found: Mapping[str, Any]
) -> Iterator[Row]:
    seen = {node["id"]: node for node in found["nodes"]}
    yield _same(
        "CPUs of the nodes",
        _by_node({node.id: placed.numbers(node.cpus) for node in nodes}),
        _by_node({number: placed.numbers(node["cpus"]) for number, node in seen.items()}),
    )
    sizes = {node.id: node.memory_bytes or _online_bytes(description, node.id) for node in nodes}
    totals = {number: node["total_bytes"] for number, node in seen.items()}
    yield Row(
        "memory of the nodes, MiB",
        f"{_by_node(_mib(sizes))}, less what the kernel keeps",
        _by_node(_mib(totals)),
        sizes.keys() == totals.keys()
        and all(LEAST_MEMORY * sizes[one] <= totals[one] <= sizes[one] for one in sizes),
    )
    rows = {node.id: [description.distances[node.id][to.id] for to in nodes] for node in nodes}
    distances = {number: list(node["distances"].values()) for number, node in seen.items()}
    alike = rows == distances
    yield Row(
        "distances",
        f"{len(nodes)} x {len(nodes)}, as described" if alike else _by_node(rows),
        "the same" if alike else _by_node(distances),
        alike,
    )
    yield _same(
        "read bandwidths, MiB/s",
        _by_node({node.id: _rate(node.memory.bandwidth) for node in nodes}),
        _by_node({number: _rate(node["read_bandwidth"]) for number, node in seen.items()}),
    )


def _devices(description: Description, found: Mapping[str, Any], online: bool) -> Iterator[Row]:
    if not description.dax and not found["dax"]:
        return
    state = {True: "online", False: "not online"}
    yield _same(
        "dax devices",
        "; ".join(
            f"{each.name} of node {each.node}, {each.device_bytes // MIB} MiB, {state[online]}"
            for each in description.dax
        ),
        "; ".join(
            f"{each['name']} of node {each['target_node']}, {each['size_bytes'] // MIB} MiB, "
            f"{state[each['online']]}"
            for each in found["dax"]
        ),
    )


def _detection(told: Found, found: Mapping[str, Any]) -> Iterator[Row]:
    yield _same("HBM nodes", placed.numbers(told.hbm), placed.numbers(found["nodes"]))
    sayings = [(f"node {node}: ", told.evidence) for node in told.hbm]
    named = all(
        any(text.startswith(node) and words in text for text in found["evidence"])
        for node, words in sayings
    )
    yield Row(
        "by what evidence",
        told.evidence + (", of each of them" if len(told.hbm) > 1 else ""),
        found["rule"],
        told.evidence in found["rule"] and named and not found["emulated"],
    )


def _memkind(
    description: Description, nodes: Sequence[Node], told: Found, ranks: Sequence[Mapping[str, Any]]
) -> Iterator[Row]:
    """What memkind finds by itself, asked from the CPUs of each node."""
    asked = {rank["node"]: rank["memkind"] for rank in ranks if rank["memkind"]}
    own = {
        cpu.id: [each for each in nodes if each.initiator == cpu.id]
        for cpu in description.cpu_nodes
    }
    high = {
        cpu: {each.id for each in local if each.id in told.memkind} for cpu, local in own.items()
    }
    yield _own_kind("HBW", high, asked, told.memkind_differs)
    every, why = {cpu: set(told.memkind) for cpu in own}, ""
    if description.has_hmat:
        every = {
            cpu: {each.id for each in local if (each.memory.bandwidth or 0) >= THRESHOLD}
            for cpu, local in own.items()
        }
    if any(found != set(told.hbm) for found in every.values()):
        why = (
            "all that passes memkind's threshold, of the memory next to the CPU: of no other does "
        )
        why += "the kernel tell the bandwidth; hbmcomm's hbw_all is all that it calls HBM"
    yield _own_kind("HBW_ALL", every, asked, why)
    kind, why = "HIGHEST_BANDWIDTH_LOCAL", ""
    if description.has_hmat:
        fastest = {
            cpu: {max(local, key=lambda each: each.memory.bandwidth or 0).id}
            for cpu, local in own.items()
        }
    else:
        fastest = high
        why = "without an HMAT memkind knows of no bandwidths, but that MCDRAM is faster than DDR4"
    yield _own_kind(kind, fastest, asked, why)


def _own_kind(
    kind: str, expected: Mapping[int, set[int]], asked: Mapping[int, Mapping[str, Any]], why: str
) -> Row:
    """One of memkind's kinds, by the nodes that its policy names."""
    answers = {cpu: kinds[kind.lower()] for cpu, kinds in asked.items()}
    found = {cpu: _policy_nodes(answer) for cpu, answer in answers.items()}
    said = {cpu: f" ({each['error']})" if "error" in each else "" for cpu, each in answers.items()}
    return Row(
        f"memkind's own {kind}, by node of the CPU",
        _by_node({cpu: placed.numbers(nodes) for cpu, nodes in expected.items()}),
        _by_node({cpu: placed.numbers(nodes) + said[cpu] for cpu, nodes in found.items()}),
        expected == found and all(_holds(answer) for answer in answers.values()),
        why,
    )


def _policy_nodes(answer: Mapping[str, Any]) -> set[int]:
    """The nodes of "bind:4-7"; none where there is no policy."""
    return set(parse_list(answer.get("policy", "").partition(":")[2]))


def _holds(answer: Mapping[str, Any]) -> bool:
    """Whether memkind's page is where its policy says."""
    return set(answer.get("nodes", ())) <= _policy_nodes(answer)


def _ranks(description: Description, ranks: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Each rank runs on a CPU of its node, and there are ranks on all nodes with CPUs."""
    home = {cpu: node.id for node in description.cpu_nodes for cpu in node.cpus}
    yield Row(
        "ranks and their CPUs",
        f"ranks on nodes {placed.numbers(node.id for node in description.cpu_nodes)}",
        "; ".join(f"rank {rank['rank']}: CPU {rank['cpu']}, {rank['node']}" for rank in ranks),
        set(home.values()) == {rank["node"] for rank in ranks}
        and all(home.get(rank["cpu"]) == rank["node"] for rank in ranks),
    )


def _memory(
    description: Description, told: Found, ranks: Sequence[Mapping[str, Any]]
) -> Iterator[Row]:
    """Arrays and segments of every kind, each against what the kind promises its rank."""
    hbm = tuple(node for node in description.nodes if node.id in told.hbm)
    for kind in KINDS:
        answers = [rank["memory"].get(kind, {}) for rank in ranks]
        if kind in HBW_KINDS and not told.hbm:
            yield from (_refused(kind, where, told, answers) for where in ("private", "arena"))
            continue
        promised = [_promise(kind, rank["node"], hbm) for rank in ranks]
        for where in ("private", "arena"):
            yield _placed(f"{kind}: {where}", promised, [each.get(where) for each in answers])
        yield _seen(kind, promised, [each.get("arena") for each in answers])


def _promise(kind: str, node: int, hbm: tuple[Node, ...]) -> placed.Promise:
    """The nodes of a kind for a rank on a node, where all have memory to give.

    A strict kind of several nodes fills the nearest first, as the kernel does; so does `regular`.
    """
    if kind == "regular":
        return placed.Promise((node,))
    if kind == "hbw_interleave":
        return placed.Promise(tuple(each.id for each in hbm), evenly=True)
    return placed.Promise(tuple(each.id for each in hbm if each.initiator == node))


def _refused(kind: str, where: str, told: Found, answers: Sequence[Mapping[str, Any]]) -> Row:
    refusals = [each.get(where) or {} for each in answers]
    texts = sorted({f"{each.get('error')}: {each.get('text')}" for each in refusals})
    texts = [textwrap.shorten(text, LONGEST, placeholder=" ...") for text in texts]
    ok = all(each.get("error") == "KindUnavailable" for each in refusals)
    named = all(told.evidence in str(each.get("text")) for each in refusals)
    expected = f"KindUnavailable, with {told.evidence!r}"
    return Row(f"{kind}: {where}", expected, "; ".join(texts), ok and named and bool(texts))


def _placed(what: str, promised: Sequence[placed.Promise], answers: Sequence[Any]) -> Row:
    """Arrays, of which every byte counts."""
    found = [placed.of(answer, NBYTES) for answer in answers]
    right = [one.holds(pages, placed.PAGE) for one, pages in zip(promised, found, strict=True)]
    return Row(what, placed.ranks(promised), placed.ranks(found), all(right) and bool(found))


def _seen(kind: str, promised: Sequence[placed.Promise], answers: Sequence[Any]) -> Row:
    """Each segment as the other ranks' page tables have it: they touched a part of it."""
    found = [
        placed.together(
            placed.of({"pages": answer["seen"][owner]})
            if "seen" in (answer or {})
            else placed.of(answer)
            for viewer, answer in enumerate(answers)
            if viewer != owner
        )
        for owner in range(len(answers))
    ]
    right = [
        one.holds(pages, pages.total // 2 // len(one.nodes))
        for one, pages in zip(promised, found, strict=True)
    ]
    what = f"{kind}: segments as others see them"
    return Row(what, placed.ranks(promised), placed.ranks(found), all(right) and bool(found))


def _online_bytes(description: Description, node: int) -> int:
    return sum(device.online_bytes for device in description.dax if device.node == node)


def _mib(sizes: Mapping[int, int]) -> dict[int, int]:
    return {node: size // MIB for node, size in sizes.items()}


def _rate(bytes_per_second: float | None) -> str:
    return f"{bytes_per_second / MIB:.0f}" if bytes_per_second else "none"


def _by_node(values: Mapping[int, object]) -> str:
    return "; ".join(f"{node}: {value}" for node, value in sorted(values.items()))
