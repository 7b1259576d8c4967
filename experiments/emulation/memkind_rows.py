"""Compares memkind's answers with those that a machine's description lets expect. Pure.

memkind's search for HBM is narrower than hbmcomm's. A row gives the reason where the two differ.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.emulation import placement_check
from experiments.emulation.machine import MIB, Description, Found, Node
from experiments.emulation.placement_check import numbers
from experiments.emulation.question import HBW_KINDS, KINDS
from experiments.machine.facts import parse_list


@dataclass(frozen=True)
class Row:
    """One expectation and what was found; why, where the expectation is not the obvious one."""

    what: str
    expected: str
    found: str
    ok: bool
    why: str = ""


def same(what: str, expected: str, found: str) -> Row:
    """A row that is right if both texts are equal."""
    return Row(what, expected, found, expected == found)


def by_node(values: Mapping[int, object]) -> str:
    """ "0: 2048; 1: 512"."""
    return "; ".join(f"{node}: {value}" for node, value in sorted(values.items()))


THRESHOLD = 204800 * MIB
"""bytes/s from which memory is high-bandwidth to memkind (its MEMKIND_HBW_THRESHOLD)."""
UNAVAILABLE = -20
"""MEMKIND_ERROR_MEMTYPE_NOT_AVAILABLE: no such memory. Any other refusal is a failure."""
PREFERRED, INTERLEAVED = "prefer", "interleave"

WITHOUT_HMAT = "without an HMAT memkind knows of no bandwidths, but that MCDRAM is faster than DDR4"
ONLY_NEXT_TO_THE_CPU = (
    "all that passes memkind's threshold, of the memory next to the CPU: of no other does the "
    "kernel tell the bandwidth; hbmcomm's hbw_all is all that it calls HBM"
)


@dataclass(frozen=True)
class Expected:
    """What memkind should answer for a kind.

    Attributes:
        nodes: {node of the asking CPU: the kind's nodes}; an empty set for UNAVAILABLE.
        policy: the kernel's name of the policy.
        why: the reason, where these are not hbmcomm's nodes.
    """

    nodes: Mapping[int, set[int]]
    policy: str = "bind"
    why: str = ""


def rows(
    description: Description, nodes: Sequence[Node], wanted: Found, found: Mapping[str, Any]
) -> Iterator[Row]:
    """memkind's own answers from the CPUs of each node, and the arrays that it provided.

    Args:
        nodes: those that have memory now.
        found: the content of question.FOUND.
    """
    expected = _expected(description, nodes, wanted)
    answered = {rank["node"]: rank["memkind"] for rank in found["ranks"] if rank["memkind"]}
    version = found["memkind_version"]
    yield Row(
        "memkind",
        f"asked from nodes {numbers(node.id for node in description.cpu_nodes)}",
        f"version {version}, from nodes {numbers(answered)}",
        bool(version) and set(answered) == {node.id for node in description.cpu_nodes},
    )
    for kind, one in expected.items():
        yield _own_kind(kind, one, answered)
    yield _givers(description, wanted, expected, found["ranks"])


def _expected(
    description: Description, nodes: Sequence[Node], wanted: Found
) -> dict[str, Expected]:
    """{kind: expectation}."""
    bandwidths = {
        cpu.id: {
            node.id: description.bandwidth(node) or 0 for node in nodes if node.initiator == cpu.id
        }
        for cpu in description.cpu_nodes
    }  # bytes/s of the memory next to each node's CPUs
    high = {cpu: own.keys() & wanted.memkind for cpu, own in bandwidths.items()}
    if description.has_hmat:
        every = {cpu: _passing(own, wanted) for cpu, own in bandwidths.items()}
        fastest = {cpu: {max(own, key=own.__getitem__)} for cpu, own in bandwidths.items()}
        why_fastest = ""
    else:
        every = {cpu: set(wanted.memkind) for cpu in bandwidths}
        fastest, why_fastest = high, WITHOUT_HMAT
    as_hbmcomm = all(found == set(wanted.hbm) for found in every.values())
    why = "" if as_hbmcomm else ONLY_NEXT_TO_THE_CPU
    return {
        "regular": Expected({cpu: set(bandwidths) for cpu in bandwidths}),
        "hbw": Expected(high, why=wanted.memkind_differs),
        "hbw_preferred": Expected(high, PREFERRED, wanted.memkind_differs),
        "hbw_all": Expected(every, why=why),
        "hbw_interleave": Expected(every, INTERLEAVED, why),
        "highest_bandwidth_local": Expected(fastest, why=why_fastest),
    }


def _passing(bandwidths: Mapping[int, int], wanted: Found) -> set[int]:
    """The nodes of high bandwidth; memkind that finds no HBM for some CPUs has none for any."""
    if not wanted.memkind:
        return set()
    return {node for node, bandwidth in bandwidths.items() if bandwidth >= THRESHOLD}


def _own_kind(kind: str, expected: Expected, answered: Mapping[int, Mapping[str, Any]]) -> Row:
    """One of memkind's kinds: the nodes that its policy names, and the nodes of its page."""
    answers = {cpu: kinds.get(kind, {}) for cpu, kinds in answered.items()}
    return Row(
        f"memkind's own {kind.upper()}, by node of the CPU",
        by_node(
            {
                cpu: f"{expected.policy}:{numbers(nodes)}" if nodes else "none"
                for cpu, nodes in expected.nodes.items()
            }
        ),
        by_node({cpu: _in_words(answer) for cpu, answer in answers.items()}),
        expected.nodes.keys() == answers.keys()
        and all(_is(answers[cpu], expected.policy, nodes) for cpu, nodes in expected.nodes.items()),
        expected.why,
    )


def _is(answer: Mapping[str, Any], policy: str, nodes: set[int]) -> bool:
    """Whether an answer names these nodes and its page is on them, or is UNAVAILABLE for none."""
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
    return policy if held else f"{policy}, its page on {numbers(pages)}"


def _givers(
    description: Description,
    wanted: Found,
    expected: Mapping[str, Expected],
    ranks: Sequence[Mapping[str, Any]],
) -> Row:
    """memkind provides private arrays of kinds for which it has hbmcomm's nodes, else mmap does."""

    def promised(kind: str, cpu: int) -> set[int]:
        if kind == "regular":
            return {node.id for node in description.cpu_nodes}
        if kind in ("hbw", "hbw_preferred"):
            return {node.id for node in description.local_hbm(cpu, wanted.hbm)}
        return set(wanted.hbm)

    kinds = [kind for kind in KINDS if wanted.hbm or kind not in HBW_KINDS]
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
