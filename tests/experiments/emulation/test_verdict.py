"""Verdicts on findings written by hand: right ones, and each way of being wrong."""

from typing import Any

import pytest

from experiments.emulation import description, question, verdict
from experiments.emulation.memkind_rows import Row
from experiments.emulation.question import HBW_KINDS

MIB = 2**20
NBYTES = 512 * 1024
PART = {"1": NBYTES // 2}  # what the other of two ranks has touched of a segment, at the least
RULE = (
    "the processor is a Knights Landing (CPUID model 87) and its MCDRAM is the nodes without CPUs"
)
NO_HBM = "no HBM: processor unknown; HMAT bandwidths none"
Found = dict[str, Any]


def on(node: int, rank: int) -> Found:
    """A rank's private array and arena; all pages of both of two ranks are on one node."""
    here = {"pages": {str(node): NBYTES}, "way": "move_pages"}
    whole, part = {str(node): 2 * NBYTES}, {str(node): NBYTES // 2}
    return {
        "private": here | {"witness": {str(node): NBYTES + 4096}, "source": "memkind"},
        "arena": here | {"seen": [whole, part] if rank == 0 else [part, whole]},
    }


def refused(text: str) -> Found:
    error = {"error": "KindUnavailable", "text": text}
    return {"private": error, "arena": error}


def node(number: int, cpus: list[int], mib: int, distances: list[int], hbm: bool) -> Found:
    return {
        "id": number,
        "cpus": cpus,
        "total_bytes": mib * MIB,
        "distances": {str(other): value for other, value in enumerate(distances)},
        "read_bandwidth": None,
        "is_hbm": hbm,
    }


def found(nodes: list[Found], hbm: Found, memkind: Found, memory: list[Found]) -> Found:
    """What two ranks find that run on node 0."""
    return {
        "topology": {"nodes": nodes, "dax": [], "hbm": hbm | {"emulated": False}},
        "memkind_version": "1.14.0",
        "ranks": [
            {"rank": 0, "cpu": 0, "node": 0, "memkind": memkind, "memory": memory[0]},
            {"rank": 1, "cpu": 1, "node": 0, "memkind": None, "memory": memory[1]},
        ],
    }


@pytest.fixture
def quadrant() -> Found:
    """What is found on knl-quadrant-flat: node 0 with CPUs 0-3, node 1 of MCDRAM."""
    memkind = {
        "regular": {"nodes": [0], "policy": "bind:0"},
        "hbw": {"nodes": [1], "policy": "bind:1"},
        "hbw_preferred": {"nodes": [1], "policy": "prefer:1"},
        "hbw_interleave": {"nodes": [1], "policy": "interleave:1"},
        "hbw_all": {"nodes": [1], "policy": "bind:1"},
        "highest_bandwidth_local": {"nodes": [1], "policy": "bind:1"},
    }
    memory = [
        {"regular": on(0, rank)} | {kind: on(1, rank) for kind in HBW_KINDS} for rank in range(2)
    ]
    nodes = [node(0, [0, 1, 2, 3], 1470, [10, 31], False), node(1, [], 500, [31, 10], True)]
    evidence = [f"node 1: {RULE}", "node 1: hwloc calls it MCDRAM"]
    hbm = {"nodes": [1], "rule": f"node 1: {RULE}", "evidence": evidence}
    return found(nodes, hbm, memkind, memory)


@pytest.fixture
def plain() -> Found:
    """What is found on the machine without HBM."""
    none = {"error": "Requested memory type is not available (-20)", "status": -20}
    memkind: Found = dict.fromkeys((*HBW_KINDS, "highest_bandwidth_local"), none)
    memkind["regular"] = {"nodes": [0], "policy": "bind:0"}
    memory = [
        {"regular": on(0, rank)}
        | {kind: refused(f"rank 0: {kind}: {NO_HBM}") for kind in HBW_KINDS}
        for rank in range(2)
    ]
    nodes = [node(0, [0, 1, 2, 3], 1960, [10], False)]
    return found(nodes, {"nodes": [], "rule": NO_HBM, "evidence": []}, memkind, memory)


def wrong(machine: str, seen: Found) -> list[str]:
    """What of it is wrong."""
    return [row.what for row in rows(machine, seen) if not row.ok]


def rows(machine: str, seen: Found) -> tuple[Row, ...]:
    return verdict.rows(description.load(machine), seen)


def test_what_is_as_described_is_right(quadrant: Found, plain: Found) -> None:
    assert wrong("knl-quadrant-flat", quadrant) == []
    assert wrong("plain", plain) == []


def test_a_machine_is_not_taken_for_another(quadrant: Found, plain: Found) -> None:
    assert "HBM nodes" in wrong("plain", quadrant)
    assert "HBM nodes" in wrong("knl-quadrant-flat", plain)


ELSEWHERE = {"1": NBYTES - 4096, "0": 4096}
LESS = {"1": NBYTES - 4096}
REFUSED = {"error": "OutOfMemory", "text": "none left"}
DEVICE = {"name": "dax0.0", "target_node": 1, "size_bytes": MIB, "online": False}
BY_OTHERS, BY_OWNER = ("ranks 0 memory hbw arena seen 1", "ranks 1 memory hbw arena seen 1")
SEEN = ["hbw: segments in page tables"]
PRIVATE, UNGIVEN = ["hbw: private"], ["private arrays are given by", "hbw: private"]


def spoil(where: Any, place: str, value: Any) -> None:
    """Put another value at a place, named by its keys; None takes away what is there."""
    *path, last = place.split()
    for key in path:
        where = where[int(key) if isinstance(where, list) else key]
    at: Any = int(last) if isinstance(where, list) else last
    if value is None:
        del where[at]
    else:
        where[at] = value


@pytest.mark.parametrize(
    ("place", "value", "what"),
    [
        ("ranks 1 memory hbw private pages", ELSEWHERE, PRIVATE),
        ("ranks 1 memory hbw private pages", LESS, PRIVATE),
        ("ranks 1 memory hbw private", REFUSED, UNGIVEN),
        ("ranks 1 memory hbw private", None, UNGIVEN),
        # the kernel's own files have pages elsewhere, too few of them, or were not read
        ("ranks 1 memory hbw private witness", ELSEWHERE, PRIVATE),
        ("ranks 1 memory hbw private witness", LESS, PRIVATE),
        ("ranks 1 memory hbw private witness", None, PRIVATE),
        ("ranks 1 memory hbw arena way", "numa_maps", ["pages are asked for by"]),
        ("ranks 0 memory regular private pages", {"1": NBYTES}, ["regular: private"]),
        ("ranks 0 memory hbw_all arena pages", {"0": NBYTES}, ["hbw_all: arena"]),
        (BY_OTHERS, PART | {"0": 4096}, SEEN),  # a page that its owner cannot know of
        (BY_OTHERS, {"1": NBYTES // 2 - 4096}, SEEN),
        (BY_OWNER, {"1": 2 * NBYTES, "0": 4096}, SEEN),
        (BY_OWNER, {"1": 2 * NBYTES - 4096}, SEEN),
        ("topology hbm nodes", [0, 1], ["HBM nodes"]),
        ("topology hbm rule", "node 1: hwloc calls it MCDRAM", ["by what evidence"]),
        ("topology hbm evidence", ["node 0: anything"], ["by what evidence"]),
        ("topology hbm emulated", True, ["by what evidence"]),
        ("topology nodes 1", None, ["CPUs of the nodes", "memory of the nodes, MiB", "distances"]),
        ("topology nodes 1 total_bytes", 384 * MIB, ["memory of the nodes, MiB"]),
        ("topology nodes 0 distances 1", 21, ["distances"]),
        ("topology nodes 1 read_bandwidth", 400e9, ["read bandwidths, MiB/s"]),
        ("topology dax", [DEVICE], ["dax devices"]),
        ("ranks 1 cpu", 7, ["ranks and their CPUs"]),
    ],
)
def test_what_is_not_as_described_is_reported(
    quadrant: Found, place: str, value: Any, what: list[str]
) -> None:
    spoil(quadrant, place, value)
    reported = wrong("knl-quadrant-flat", quadrant)
    assert [each for each in reported if each in what] == what
    assert set(reported) - set(what) <= {"read bandwidths, MiB/s"}


@pytest.mark.parametrize("answer", [on(0, 0), refused("hbw: not here")])
def test_without_hbm_there_is_a_refusal_that_says_what_was_looked_at(
    plain: Found, answer: Found
) -> None:
    plain["ranks"][0]["memory"]["hbw"] = answer
    assert wrong("plain", plain) == ["hbw: private", "hbw: arena"]


def test_interleaved_pages_are_dealt_out_evenly() -> None:
    machine = description.load("knl-snc4-flat")
    size = question.nbytes(len(machine.cpu_nodes))
    promised = verdict._promise("hbw_interleave", 0, machine, machine.found)
    even = {str(each): size // 4 for each in (4, 5, 6, 7)}
    for pages, witness, right in (
        (even, even, True),
        ({"4": size}, even, False),
        (even, {"4": size}, False),
    ):
        private = {"pages": pages, "witness": witness}
        reported = verdict._placed("private", [promised], [private], size, True)
        assert reported.ok is right
        assert reported.expected == "every rank: 4-7 evenly"


def test_each_rank_has_the_hbm_of_its_own_quadrant() -> None:
    machine = description.load("xeon-max-flat-snc4")
    promised = [verdict._promise("hbw", each, machine, machine.found).nodes for each in range(8)]
    assert promised == [(each,) for each in range(8, 16)]


def test_without_a_device_nothing_can_be_online(plain: Found) -> None:
    with pytest.raises(ValueError, match="plain has no dax device"):
        verdict.rows(description.load("plain"), plain, online=True)


def test_the_table_names_what_is_wrong(quadrant: Found) -> None:
    spoil(quadrant, "ranks 1 memory hbw private pages", ELSEWHERE)
    shown = verdict.to_table(rows("knl-quadrant-flat", quadrant), 160)
    line = next(line for line in shown.splitlines() if "hbw: private" in line)
    assert line.startswith("WRONG")
    assert "rank 0: 1; rank 1: 1 (99.2%), 0 (0.8%)" in line
    assert shown.endswith("1 of 31 wrong\n")
    right = [row for row in rows("knl-quadrant-flat", quadrant) if row.ok]
    assert verdict.to_table(right, 160).endswith("all 30 right\n")
