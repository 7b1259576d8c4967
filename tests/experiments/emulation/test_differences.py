"""A guest that is as described differs in nothing; each way of being another is named."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from experiments.emulation import description, guest_command
from experiments.emulation.differences import KINDS, Fact, bytes_of, differences
from experiments.model.environment import machine_names
from hbmcomm.memory.hbm_detection import find
from tests.experiments.emulation.kernel_view import clues_as_shown

MIB = 2**20
HBM: dict[str, dict[int, tuple[int, ...]]] = {  # the HBM nodes that belong to the CPUs of each node
    "knl-quadrant-flat": {0: (1,)},
    "knl-snc4-flat": {node: (node + 4,) for node in range(4)},
    "xeon-max-flat-snc4": {node: (node + 8,) for node in range(8)},
    "gh200": {0: (1,)},
    "hbm-as-dax": {0: (1,)},
}
Shown = dict[str, Any]


def shown(name: str, online: bool = False) -> Shown:
    """What a guest of a machine shows where all is right."""
    machine = description.load(name)
    wanted = machine.found_online if online else machine.found
    assert wanted is not None
    clues, size = clues_as_shown(machine, online), bytes_of(machine)

    def on(kind: str, node: int) -> Shown:
        nodes = (node,) if kind == "regular" else HBM.get(name, {}).get(node, ())
        nodes = wanted.hbm if kind == "hbw_interleave" else nodes
        if kind != "regular" and not wanted.hbm:
            return {"error": "KindUnavailable", "text": f"{kind}: {find(clues).rule}"}
        return {"pages": {number: size // len(nodes) for number in nodes}, "way": "move_pages"}

    homes = [node.id for node in machine.cpu_nodes]
    homes *= 2 if len(homes) == 1 else 1
    taken = {node: list(wanted.memkind) for node in homes}  # by memkind alone
    report = {
        "topology": {
            "nodes": [asdict(node) for node in clues.nodes],
            "dax": [asdict(device) for device in clues.dax],
            "hbm": asdict(find(clues)),
        },
        "ranks": [
            {
                "cpu": machine.nodes[node].cpus[rank if rank and node == 0 else 0],
                "node": node,
                "memkind": taken.pop(node, None),
                "memory": {
                    kind: dict.fromkeys(("private", "arena"), on(kind, node)) for kind in KINDS
                },
            }
            for rank, node in enumerate(homes)
        ],
    }
    copied: Shown = json.loads(json.dumps(report))  # as it comes from the guest
    return copied


def test_what_is_as_described_differs_in_nothing() -> None:
    for name in machine_names():
        assert differences(description.load(name), shown(name)) == (), name


def test_a_device_that_is_online_is_a_node() -> None:
    machine = description.load("hbm-as-dax")
    assert differences(machine, shown("hbm-as-dax", online=True), online=True) == ()
    before = differences(machine, shown("hbm-as-dax"), online=True)
    assert {"node 1", "device dax0.0", "HBM"} <= {fact.what for fact in before}
    with pytest.raises(ValueError, match="plain has no dax device"):
        differences(description.load("plain"), shown("plain"), online=True)


def test_a_machine_is_not_taken_for_another() -> None:
    names = ("plain", "knl-quadrant-flat")
    for name, other in (names, names[::-1]):
        differing = differences(description.load(name), shown(other))
        assert {"node 1", "HBM"} <= {fact.what for fact in differing}, name


SIZE = bytes_of(description.load("knl-quadrant-flat"))
ELSEWHERE = {"1": SIZE - 4096, "0": 4096}
REFUSED = {"error": "OutOfMemory", "text": "none left"}
DEVICE = {"name": "dax0.0", "target_node": 1, "size_bytes": MIB, "online": False}


def test_what_is_not_as_described_is_named() -> None:
    machine = description.load("knl-quadrant-flat")
    changes: list[tuple[str, Any, str]] = [
        ("ranks 1 memory hbw private pages", ELSEWHERE, "hbw, private, rank 1"),
        ("ranks 1 memory hbw private pages", {"1": SIZE - 4096}, "hbw, private, rank 1"),
        ("ranks 1 memory hbw private pages", {}, "hbw, private, rank 1"),
        ("ranks 1 memory hbw private", REFUSED, "hbw, private, rank 1"),
        ("ranks 1 memory hbw arena way", "numa_maps", "hbw, arena, rank 1"),
        ("ranks 0 memory regular private pages", {"1": SIZE}, "regular, private, rank 0"),
        ("ranks 0 memory hbw_all arena pages", {"0": SIZE}, "hbw_all, arena, rank 0"),
        ("topology hbm nodes", [0, 1], "HBM"),
        ("topology hbm rule", "node 1: hwloc calls it MCDRAM", "HBM"),
        ("topology hbm evidence", ["node 0: anything"], "HBM"),
        ("topology hbm emulated", True, "HBM"),
        ("topology nodes 1 total_bytes", 384 * MIB, "node 1"),
        ("topology nodes 0 cpus", [0, 1, 2], "node 0"),
        ("topology nodes 0 distances 1", 21, "node 0"),
        ("topology nodes 1 read_bandwidth", 400e9, "node 1"),
        ("topology dax", [DEVICE], "device dax0.0"),
        ("ranks 1 cpu", 7, "ranks"),
        ("ranks 0 memkind", [0], "memkind's own hbw"),
        ("ranks 0 memkind", "ended with -11", "memkind's own hbw"),
        ("ranks 0 memkind", None, "memkind's own hbw"),
    ]
    for place, value, what in changes:
        report = shown(machine.name)
        *path, last = (int(key) if key.isdecimal() else key for key in place.split())
        where: Any = report
        for key in path:
            where = where[key] if key in where or isinstance(where, list) else where[str(key)]
        where[last if last in where or isinstance(where, list) else str(last)] = value
        assert [fact.what for fact in differences(machine, report)] == [what], place


def test_what_is_missing_or_too_much_is_named() -> None:
    machine = description.load("knl-quadrant-flat")
    one_less, one_more, no_rank = (shown(machine.name) for _ in range(3))
    one_less["topology"]["nodes"].pop()
    nodes = one_more["topology"]["nodes"]
    nodes.append(nodes[0] | {"id": 2})
    no_rank["ranks"].pop()
    for report, what in ((one_less, "node 1"), (one_more, "node 2"), (no_rank, "ranks")):
        assert [fact.what for fact in differences(machine, report)] == [what]


def test_without_hbm_there_is_a_refusal_that_says_what_was_looked_at() -> None:
    for answer in (
        {"pages": {"0": SIZE}, "way": "move_pages"},
        {"error": "KindUnavailable", "text": "hbw: not here"},
        {"error": "OutOfMemory", "text": "no HBM: "},
    ):
        report = shown("plain")
        report["ranks"][0]["memory"]["hbw"]["arena"] = answer
        (fact,) = differences(description.load("plain"), report)
        assert fact.what == "hbw, arena, rank 0", answer


def test_interleaved_pages_are_shared_out_evenly() -> None:
    machine = description.load("knl-snc4-flat")
    for moved, is_even in ((0, True), (4096, True), (8192, False)):
        report = shown(machine.name)
        pages = report["ranks"][0]["memory"]["hbw_interleave"]["private"]["pages"]
        pages["4"], pages["5"] = pages["4"] + moved, pages["5"] - moved
        assert (differences(machine, report) == ()) is is_even, moved


def test_the_table_has_what_was_expected_and_seen() -> None:
    machine = description.load("knl-quadrant-flat")
    report = shown(machine.name)
    report["ranks"][1]["memory"]["hbw"]["private"]["pages"] = ELSEWHERE
    differing = differences(machine, report)
    assert differing == (
        Fact(
            "hbw, private, rank 1",
            "524,288 bytes on nodes 1, by move_pages",
            "520,192 bytes on node 1, 4,096 bytes on node 0, by move_pages",
        ),
    )
    for word in differing[0]:
        assert word in guest_command.to_table(differing, 200)
