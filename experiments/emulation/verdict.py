"""Compares what check.py found with a machine description. Pure: values in, rows out."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from experiments.console.output import printed
from experiments.emulation import memkind_rows, placement_check
from experiments.emulation.machine import MIB, Description, Found, Node
from experiments.emulation.memkind_rows import Row, by_node, same
from experiments.emulation.placement_check import Pages, Promise, numbers, together
from experiments.emulation.question import HBW_KINDS, KINDS, PAGE, nbytes

LEAST_MEMORY = 0.8
"""Least share of a node's memory; the kernel keeps some, much of a small node with CPUs."""
LONGEST = 90  # letters of a refusal in a table
MARKS = {True: ("ok", "green"), False: ("WRONG", "bold red")}


def rows(
    description: Description, found: Mapping[str, Any], online: bool = False
) -> tuple[Row, ...]:
    """All expectations of the description, with what was found.

    Args:
        found: the content of question.FOUND.
        online: the dax devices have been brought online.
    """
    wanted = description.found_online if online else description.found
    if wanted is None:
        raise ValueError(f"{description.name} has no dax device that could be online")
    nodes = tuple(node for node in description.nodes if node.memory_bytes or online)
    return (
        *_topology(description, nodes, found["topology"]),
        *_devices(description, found["topology"], online),
        *_detection(wanted, found["topology"]["hbm"]),
        *memkind_rows.rows(description, nodes, wanted, found),
        *_ranks(description, found["ranks"]),
        _way(found["ranks"]),
        *_memory(description, wanted, found["ranks"]),
    )


def to_table(found: Sequence[Row], width: int | None = None) -> str:
    """The rows as a table for a terminal, and a line that sums up."""
    columns = (Column(name, overflow="fold") for name in ("", "what", "expected", "found"))
    table = Table(*columns, box=None, pad_edge=False)
    for row in found:
        shown = Text(row.found)
        if row.why:
            shown.append(f"\n{row.why}", style="dim")
        table.add_row(Text(*MARKS[row.ok]), Text(row.what), Text(row.expected), shown)
    wrong = sum(not row.ok for row in found)
    summary = f"{wrong} of {len(found)} wrong" if wrong else f"all {len(found)} right"
    return printed(table, summary, width=width)


def _topology(
    description: Description, nodes: Sequence[Node], found: Mapping[str, Any]
) -> Iterator[Row]:
    seen = {node["id"]: node for node in found["nodes"]}
    yield same(
        "CPUs of the nodes",
        by_node({node.id: numbers(node.cpus) for node in nodes}),
        by_node({number: numbers(node["cpus"]) for number, node in seen.items()}),
    )
    later = {device.node: device.online_bytes for device in description.dax}
    sizes = {node.id: node.memory_bytes or later[node.id] for node in nodes}
    totals = {number: node["total_bytes"] for number, node in seen.items()}
    yield Row(
        "memory of the nodes, MiB",
        f"{by_node(_mib(sizes))}, less what the kernel keeps",
        by_node(_mib(totals)),
        sizes.keys() == totals.keys()
        and all(LEAST_MEMORY * sizes[one] <= totals[one] <= sizes[one] for one in sizes),
    )
    yield _distances(
        {node.id: [description.distances.rows[node.id][to.id] for to in nodes] for node in nodes},
        {number: list(node["distances"].values()) for number, node in seen.items()},
    )
    yield same(
        "read bandwidths, MiB/s",
        by_node({node.id: _rate(description.bandwidth(node)) for node in nodes}),
        by_node({number: _rate(node["read_bandwidth"]) for number, node in seen.items()}),
    )


def _distances(expected: Mapping[int, list[int]], found: Mapping[int, list[int]]) -> Row:
    """ACPI's distances by node, which are only listed where they differ."""
    if expected == found:
        size = f"{len(expected)} x {len(expected)}"
        return Row("distances", f"{size}, as described", "the same", True)
    return Row("distances", by_node(expected), by_node(found), False)


def _devices(description: Description, found: Mapping[str, Any], online: bool) -> Iterator[Row]:
    if not description.dax and not found["dax"]:
        return
    state = {True: "online", False: "not online"}
    yield same(
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


def _detection(wanted: Found, found: Mapping[str, Any]) -> Iterator[Row]:
    yield same("HBM nodes", numbers(wanted.hbm), numbers(found["nodes"]))
    named = {
        node
        for node in wanted.hbm
        for text in found["evidence"]
        if text.startswith(f"node {node}: ") and wanted.evidence in text
    }
    yield Row(
        "by what evidence",
        wanted.evidence + (", of each of them" if len(wanted.hbm) > 1 else ""),
        found["rule"],
        wanted.evidence in found["rule"] and named == set(wanted.hbm) and not found["emulated"],
    )


def _ranks(description: Description, ranks: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Each rank runs on a CPU of its node, and all nodes with CPUs have ranks."""
    home = {cpu: node.id for node in description.cpu_nodes for cpu in node.cpus}
    yield Row(
        "ranks and their CPUs",
        f"ranks on nodes {numbers(node.id for node in description.cpu_nodes)}",
        "; ".join(f"rank {rank['rank']}: CPU {rank['cpu']}, {rank['node']}" for rank in ranks),
        set(home.values()) == {rank["node"] for rank in ranks}
        and all(home.get(rank["cpu"]) == rank["node"] for rank in ranks),
    )


def _way(ranks: Sequence[Mapping[str, Any]]) -> Row:
    """hbmcomm asks the kernel for each page, and infers none."""
    ways = {
        each["way"]
        for rank in ranks
        for memory in rank["memory"].values()
        for each in memory.values()
        if each and "way" in each
    }
    return same("pages are asked for by", "move_pages", ", ".join(sorted(ways)))


def _memory(
    description: Description, wanted: Found, ranks: Sequence[Mapping[str, Any]]
) -> Iterator[Row]:
    """Arrays and segments of every kind, with the nodes that the kind promises each rank."""
    size = nbytes(len(description.cpu_nodes))
    for kind in KINDS:
        answers = [rank["memory"].get(kind, {}) for rank in ranks]
        if kind in HBW_KINDS and not wanted.hbm:
            yield from (_refused(kind, where, wanted, answers) for where in ("private", "arena"))
            continue
        promised = [_promise(kind, rank["node"], description, wanted) for rank in ranks]
        for where in ("private", "arena"):
            given = [each.get(where) for each in answers]
            yield _placed(f"{kind}: {where}", promised, given, size, where == "private")
        yield _seen(kind, promised, [each.get("arena") for each in answers], size)


def _promise(kind: str, node: int, description: Description, wanted: Found) -> Promise:
    """The nodes of a kind for a rank on a node, if all of them have free memory.

    A strict kind of several nodes fills the nearest first, as the kernel does; so does `regular`.
    """
    if kind == "regular":
        return Promise((node,))
    if kind == "hbw_interleave":
        return Promise(wanted.hbm, evenly=True)
    return Promise(tuple(each.id for each in description.local_hbm(node, wanted.hbm)))


def _refused(kind: str, where: str, wanted: Found, answers: Sequence[Mapping[str, Any]]) -> Row:
    refusals = [each.get(where) or {} for each in answers]
    texts = sorted({f"{each.get('error')}: {each.get('text')}" for each in refusals})
    texts = [textwrap.shorten(text, LONGEST, placeholder=" ...") for text in texts]
    ok = all(each.get("error") == "KindUnavailable" for each in refusals)
    named = all(wanted.evidence in str(each.get("text")) for each in refusals)
    expected = f"KindUnavailable, with {wanted.evidence!r}"
    return Row(f"{kind}: {where}", expected, "; ".join(texts), ok and named and bool(texts))


def _placed(
    what: str, promised: Sequence[Promise], answers: Sequence[Any], size: int, private: bool
) -> Row:
    """The nodes of arrays to the last byte: by hbmcomm and, for private arrays, by the kernel.

    The kernel counts whole pages, so it may have more: an array's neighbours in its first and last
    page. _seen has the kernel's count for an arena.
    """
    found = [placement_check.of(answer, size) for answer in answers]
    right = [one.holds(pages, PAGE) for one, pages in zip(promised, found, strict=True)]
    text = placement_check.ranks(found)
    if private:
        witness = [placement_check.of(answer, size, by="witness", more=True) for answer in answers]
        right += [one.holds(seen, PAGE) for one, seen in zip(promised, witness, strict=True)]
        if placement_check.ranks(witness) != text:
            text += f"; numa_maps has {placement_check.ranks(witness)}"
    return Row(what, placement_check.ranks(promised), text, all(right) and bool(found))


def _seen(kind: str, promised: Sequence[Promise], answers: Sequence[Any], size: int) -> Row:
    """Each segment in the page tables: all of it in its owner's, parts of it in the others'.

    The owner has touched both of its arrays. Every other rank has read its own part of what the
    owner sent, or written its part into the owner's array.
    """
    owns = [_view(answer, owner, 2 * size) for owner, answer in enumerate(answers)]
    others = [
        together(
            _view(answer, owner, size // len(answers))
            for viewer, answer in enumerate(answers)
            if viewer != owner
        )
        for owner in range(len(answers))
    ]
    right = all(
        one.holds(pages, pages.total // 2 // len(one.nodes))
        for views in (owns, others)
        for one, pages in zip(promised, views, strict=True)
    )
    text = placement_check.ranks(others)
    if placement_check.ranks(owns) != text:
        text += f"; their owners have {placement_check.ranks(owns)}"
    what = f"{kind}: segments in page tables"
    return Row(what, placement_check.ranks(promised), text, right and bool(answers))


def _view(answer: Mapping[str, Any] | None, owner: int, least: int) -> Pages:
    """What a rank has touched of the owner's segment: `least` bytes or more."""
    if answer and "seen" in answer:
        return placement_check.of({"pages": answer["seen"][owner]}, least, more=True)
    return placement_check.of(answer, least, more=True)


def _mib(sizes: Mapping[int, int]) -> dict[int, int]:
    return {node: size // MIB for node, size in sizes.items()}


def _rate(bytes_per_second: float | None) -> str:
    return f"{bytes_per_second / MIB:.0f}" if bytes_per_second else "none"
