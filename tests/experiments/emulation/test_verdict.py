"""What is told of findings written by hand: right ones, and each way of being wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from experiments.emulation import description, question, verdict
from experiments.emulation.question import HBW_KINDS
from experiments.emulation.verdict import Row

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
    return {
        "topology": {
            "nodes": [
                node(0, [0, 1, 2, 3], 1470, [10, 31], False),
                node(1, [], 500, [31, 10], True),
            ],
            "dax": [],
            "hbm": {
                "nodes": [1],
                "rule": f"node 1: {RULE}",
                "evidence": [f"node 1: {RULE}", "node 1: hwloc calls it MCDRAM"],
                "emulated": False,
            },
        },
        "memkind_version": "1.14.0",
        "ranks": [
            {"rank": 0, "cpu": 0, "node": 0, "memkind": memkind, "memory": memory[0]},
            {"rank": 1, "cpu": 1, "node": 0, "memkind": None, "memory": memory[1]},
        ],
    }


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
    return {
        "topology": {
            "nodes": [node(0, [0, 1, 2, 3], 1960, [10], False)],
            "dax": [],
            "hbm": {"nodes": [], "rule": NO_HBM, "evidence": [], "emulated": False},
        },
        "memkind_version": "1.14.0",
        "ranks": [
            {"rank": 0, "cpu": 0, "node": 0, "memkind": memkind, "memory": memory[0]},
            {"rank": 1, "cpu": 1, "node": 0, "memkind": None, "memory": memory[1]},
        ],
    }


def wrong(machine: str, found: Found) -> list[str]:
    """What of it is wrong."""
    return [row.what for row in rows(machine, found) if not row.ok]


def rows(machine: str, found: Found) -> tuple[Row, ...]:
    return verdict.rows(description.load(machine), found)


def test_what_is_as_described_is_right(quadrant: Found, plain: Found) -> None:
    assert wrong("knl-quadrant-flat", quadrant) == []
    assert wrong("plain", plain) == []


def test_a_machine_is_not_taken_for_another(quadrant: Found, plain: Found) -> None:
    assert "HBM nodes" in wrong("plain", quadrant)
    assert "HBM nodes" in wrong("knl-quadrant-flat", plain)


def pages_elsewhere(found: Found) -> None:
    found["ranks"][1]["memory"]["hbw"]["private"]["pages"] = {"1": NBYTES - 4096, "0": 4096}


def pages_nowhere(found: Found) -> None:
    found["ranks"][1]["memory"]["hbw"]["private"]["pages"] = {"1": NBYTES - 4096}


def no_array(found: Found) -> None:
    found["ranks"][1]["memory"]["hbw"]["private"] = {"error": "OutOfMemory", "text": "none left"}


def no_answer(found: Found) -> None:
    del found["ranks"][1]["memory"]["hbw"]["private"]


def regular_on_hbm(found: Found) -> None:
    found["ranks"][0]["memory"]["regular"]["private"]["pages"] = {"1": NBYTES}


def arena_elsewhere(found: Found) -> None:
    found["ranks"][0]["memory"]["hbw_all"]["arena"]["pages"] = {"0": NBYTES}


def hbmcomm_is_mistaken(found: Found) -> None:
    """It calls all pages right, and the kernel's own files have one elsewhere."""
    found["ranks"][1]["memory"]["hbw"]["private"]["witness"] = {"1": NBYTES - 4096, "0": 4096}


def too_few_for_the_kernel(found: Found) -> None:
    found["ranks"][1]["memory"]["hbw"]["private"]["witness"] = {"1": NBYTES - 4096}


def no_witness(found: Found) -> None:
    del found["ranks"][1]["memory"]["hbw"]["private"]["witness"]


def page_inferred(found: Found) -> None:
    found["ranks"][1]["memory"]["hbw"]["arena"]["way"] = "numa_maps"


def seen_elsewhere(found: Found) -> None:
    """A page that its owner cannot know of: rank 0 saw it in rank 1's segment."""
    found["ranks"][0]["memory"]["hbw"]["arena"]["seen"][1] = PART | {"0": 4096}


def too_little_seen(found: Found) -> None:
    found["ranks"][0]["memory"]["hbw"]["arena"]["seen"][1] = {"1": NBYTES // 2 - 4096}


def own_elsewhere(found: Found) -> None:
    found["ranks"][1]["memory"]["hbw"]["arena"]["seen"][1] |= {"0": 4096}


def too_little_of_its_own(found: Found) -> None:
    found["ranks"][1]["memory"]["hbw"]["arena"]["seen"][1] = {"1": 2 * NBYTES - 4096}


def other_hbm(found: Found) -> None:
    found["topology"]["hbm"]["nodes"] = [0, 1]


def other_evidence(found: Found) -> None:
    found["topology"]["hbm"]["rule"] = "node 1: hwloc calls it MCDRAM"


def no_evidence(found: Found) -> None:
    found["topology"]["hbm"]["evidence"] = ["node 0: anything"]


def configured(found: Found) -> None:
    found["topology"]["hbm"]["emulated"] = True


def a_node_less(found: Found) -> None:
    del found["topology"]["nodes"][1]


def a_block_less(found: Found) -> None:
    found["topology"]["nodes"][1]["total_bytes"] = 384 * MIB


def other_distances(found: Found) -> None:
    found["topology"]["nodes"][0]["distances"]["1"] = 21


def a_bandwidth(found: Found) -> None:
    found["topology"]["nodes"][1]["read_bandwidth"] = 400e9


def a_device(found: Found) -> None:
    found["topology"]["dax"] = [
        {"name": "dax0.0", "target_node": 1, "size_bytes": MIB, "online": False}
    ]


def a_rank_elsewhere(found: Found) -> None:
    found["ranks"][1]["cpu"] = 7


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (pages_elsewhere, ["hbw: private"]),
        (pages_nowhere, ["hbw: private"]),
        (no_array, ["private arrays are given by", "hbw: private"]),
        (no_answer, ["private arrays are given by", "hbw: private"]),
        (hbmcomm_is_mistaken, ["hbw: private"]),
        (too_few_for_the_kernel, ["hbw: private"]),
        (no_witness, ["hbw: private"]),
        (page_inferred, ["pages are asked for by"]),
        (regular_on_hbm, ["regular: private"]),
        (arena_elsewhere, ["hbw_all: arena"]),
        (seen_elsewhere, ["hbw: segments in page tables"]),
        (too_little_seen, ["hbw: segments in page tables"]),
        (own_elsewhere, ["hbw: segments in page tables"]),
        (too_little_of_its_own, ["hbw: segments in page tables"]),
        (other_hbm, ["HBM nodes"]),
        (other_evidence, ["by what evidence"]),
        (no_evidence, ["by what evidence"]),
        (configured, ["by what evidence"]),
        (a_node_less, ["CPUs of the nodes", "memory of the nodes, MiB", "distances"]),
        (a_block_less, ["memory of the nodes, MiB"]),
        (other_distances, ["distances"]),
        (a_bandwidth, ["read bandwidths, MiB/s"]),
        (a_device, ["dax devices"]),
        (a_rank_elsewhere, ["ranks and their CPUs"]),
    ],
)
def test_what_is_not_as_described_is_reported(
    quadrant: Found, spoil: Callable[[Found], None], what: list[str]
) -> None:
    spoil(quadrant)
    found = wrong("knl-quadrant-flat", quadrant)
    assert [each for each in found if each in what] == what
    assert set(found) - set(what) <= {"read bandwidths, MiB/s"}


def test_hbm_where_there_is_none_is_wrong(plain: Found) -> None:
    plain["ranks"][0]["memory"]["hbw_preferred"] = on(0, 0)
    assert wrong("plain", plain) == ["hbw_preferred: private", "hbw_preferred: arena"]


def test_a_refusal_says_what_was_looked_at(plain: Found) -> None:
    plain["ranks"][0]["memory"]["hbw"] = refused("hbw: not here")
    assert wrong("plain", plain) == ["hbw: private", "hbw: arena"]


def test_interleaved_pages_are_dealt_out_evenly() -> None:
    machine = description.load("knl-snc4-flat")
    size = question.nbytes(machine)
    even = {str(each): size // 4 for each in (4, 5, 6, 7)}
    for pages, witness, right in (
        (even, even, True),
        ({"4": size}, even, False),
        (even, {"4": size}, False),
    ):
        private = {"pages": pages, "witness": witness}
        reported = verdict._placed("private", [_interleaved(machine)], [private], size, True)
        assert reported.ok is right
        assert reported.expected == "every rank: 4-7 evenly"


def _interleaved(machine: description.Description) -> Any:
    return verdict._promise("hbw_interleave", 0, machine, machine.found)


def test_each_rank_has_the_hbm_of_its_own_quadrant() -> None:
    machine = description.load("xeon-max-flat-snc4")
    promised = [verdict._promise("hbw", each, machine, machine.found).nodes for each in range(8)]
    assert promised == [(each,) for each in range(8, 16)]


def test_without_a_device_nothing_can_be_online(plain: Found) -> None:
    with pytest.raises(ValueError, match="plain has no dax device"):
        verdict.rows(description.load("plain"), plain, online=True)


def test_the_table_names_what_is_wrong(quadrant: Found) -> None:
    pages_elsewhere(quadrant)
    shown = verdict.to_table(rows("knl-quadrant-flat", quadrant), 160)
    line = next(line for line in shown.splitlines() if "hbw: private" in line)
    assert line.startswith("WRONG")
    assert "rank 0: 1; rank 1: 1 (99.2%), 0 (0.8%)" in line
    assert shown.endswith("1 of 31 wrong\n")
    right = [row for row in rows("knl-quadrant-flat", quadrant) if row.ok]
    assert verdict.to_table(right, 160).endswith("all 30 right\n")
