"""Whether memkind answers as a machine's description lets expect, and serves what it can. Pure.

Its search for HBM is narrower than hbmcomm's: where the two differ, a row says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.emulation import placement_check
from experiments.emulation.machine import MIB, Description, Found, Node
from experiments.emulation.question import HBW_KINDS, KINDS
from experiments.emulation.rows import Row, by_node, same
from experiments.programs.machine.facts import parse_list

THRESHOLD = 204800 * MIB
"""bytes/s from which memory is high-bandwidth to memkind (its MEMKIND_HBW_THRESHOLD)."""
UNAVAILABLE = -20
"""MEMKIND_ERROR_MEMTYPE_NOT_AVAILABLE: no such memory. Any other refusal is a failure."""
PREFERRED, INTERLEAVED = "prefer", "interleave"


@dataclass(frozen=True)
class Expected:
    """What memkind makes of a kind.

    Attributes:
        nodes: {node of the CPU that asks: the nodes}; none where it must say UNAVAILABLE.
        policy: the kernel's word for how it takes them.
        why: the reason where these are not hbmcomm's nodes.
    """

    nodes: Mapping[int, set[int]]
    policy: str = "bind"
    why: str = ""


def rows(
    description: Description, nodes: Sequence[Node], told: Found, found: Mapping[str, Any]
) -> Iterator[Row]:
    """memkind's own answers, asked from the CPUs of each node, and what arrays it gave.

    Args:
        nodes: those that have memory now.
        found: the content of question.FOUND.
    """
    expected = _expected(description, nodes, told)
    asked = {rank["node"]: rank["memkind"] for rank in found["ranks"] if rank["memkind"]}
    version = found["memkind_version"]
    yield Row(
        "memkind",
        f"asked from nodes {placement_check.numbers(node.id for node in description.cpu_nodes)}",
        f"version {version}, from nodes {placement_check.numbers(asked)}",
        bool(version) and set(asked) == {node.id for node in description.cpu_nodes},
    )
    for kind, one in expected.items():
        yield _own_kind(kind, one, asked)
    yield _givers(description, told, expected, found["ranks"])


def _expected(description: Description, nodes: Sequence[Node], told: Found) -> dict[str, Expected]:
    """By kind."""
    own = {
        cpu.id: [each for each in nodes if each.initiator == cpu.id]
        for cpu in description.cpu_nodes
    }
    high = {
        cpu: {each.id for each in local if each.id in told.memkind} for cpu, local in own.items()
    }
    every, why = {cpu: set(told.memkind) for cpu in own}, ""
    fastest = high
    without = "without an HMAT memkind knows of no bandwidths, but that MCDRAM is faster than DDR4"
    if description.has_hmat:
        every = {
            cpu: {
                each.id
                for each in local
                if told.memkind and (each.memory.bandwidth or 0) >= THRESHOLD
            }  # a memkind that finds no HBM for some of the CPUs has none for any
            for cpu, local in own.items()
        }
        fastest = {
            cpu: {max(local, key=lambda each: each.memory.bandwidth or 0).id}
            for cpu, local in own.items()
        }
        without = ""
    if any(found != set(told.hbm) for found in every.values()):
        why = (
            "all that passes memkind's threshold, of the memory next to the CPU: of no other does "
            "the kernel tell the bandwidth; hbmcomm's hbw_all is all that it calls HBM"
        )
    return {
        "regular": Expected({cpu: set(own) for cpu in own}),
        "hbw": Expected(high, why=told.memkind_differs),
        "hbw_preferred": Expected(high, PREFERRED, told.memkind_differs),
        "hbw_all": Expected(every, why=why),
        "hbw_interleave": Expected(every, INTERLEAVED, why),
        "highest_bandwidth_local": Expected(fastest, why=without),
    }


def _own_kind(kind: str, expected: Expected, asked: Mapping[int, Mapping[str, Any]]) -> Row:
    """One of memkind's kinds, by the nodes that its policy names and where its page is."""
    answers = {cpu: kinds.get(kind, {}) for cpu, kinds in asked.items()}
    return Row(
        f"memkind's own {kind.upper()}, by node of the CPU",
        by_node(
            {
                cpu: f"{expected.policy}:{placement_check.numbers(nodes)}" if nodes else "none"
                for cpu, nodes in expected.nodes.items()
            }
        ),
        by_node({cpu: _in_words(answer) for cpu, answer in answers.items()}),
        expected.nodes.keys() == answers.keys()
        and all(_is(answers[cpu], expected.policy, nodes) for cpu, nodes in expected.nodes.items()),
        expected.why,
    )


def _is(answer: Mapping[str, Any], policy: str, nodes: set[int]) -> bool:
    """Whether an answer names these nodes and its page is on them; of none: whether it says so."""
    if not nodes:
        return answer.get("status") == UNAVAILABLE
    word, _, named = answer.get("policy", "").partition(":")
    pages = set(answer.get("nodes", ()))
    return word == policy and set(parse_list(named)) == nodes and bool(pages) and pages <= nodes


def _in_words(answer: Mapping[str, Any]) -> str:
    if answer.get("status") == UNAVAILABLE:
        return f"none ({answer['error']})"
    if "policy" not in answer:
        return f"no answer ({answer.get('error', 'not asked')})"
    policy, pages = answer["policy"], set(answer.get("nodes", ()))
    held = pages and pages <= set(parse_list(policy.partition(":")[2]))
    return policy if held else f"{policy}, its page on {placement_check.numbers(pages)}"


def _givers(
    description: Description,
    told: Found,
    expected: Mapping[str, Expected],
    ranks: Sequence[Mapping[str, Any]],
) -> Row:
    """memkind gives the private arrays of a kind that it understands as hbmcomm does, else mmap."""

    def promised(kind: str, cpu: int) -> set[int]:
        if kind == "regular":
            return {node.id for node in description.cpu_nodes}
        if kind in ("hbw", "hbw_preferred"):
            return {node.id for node in description.local_hbm(cpu, told.hbm)}
        return set(told.hbm)

    kinds = [kind for kind in KINDS if told.hbm or kind not in HBW_KINDS]
    should = [
        {
            kind: "memkind" if expected[kind].nodes[node] == promised(kind, node) else "mmap"
            for kind in kinds
        }
        for node in (rank["node"] for rank in ranks)
    ]
    gave = [
        {kind: _private(rank, kind).get("source") or "nobody" for kind in kinds} for rank in ranks
    ]
    return same(
        "private arrays are given by",
        placement_check.ranks([_by_giver(each) for each in should]),
        placement_check.ranks([_by_giver(each) for each in gave]),
    )


def _private(rank: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = rank["memory"].get(kind, {}).get("private") or {}
    return found


def _by_giver(givers: Mapping[str, str]) -> str:
    """ "memkind: regular, hbw; mmap: hbw_all"."""
    return "; ".join(
        f"{giver}: {', '.join(kind for kind, one in givers.items() if one == giver)}"
        for giver in sorted(set(givers.values()))
    )
