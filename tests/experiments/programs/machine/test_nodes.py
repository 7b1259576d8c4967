"""What a result keeps of a machine's nodes, from a tree as the kernel shows it."""

import json
import os
from pathlib import Path

import pytest

import hbmcomm
from experiments.programs.machine.nodes import nodes
from tests.hbmcomm.memory.machine_files import write_machine

KIB_OF_GIB = 2**20


MACHINE = {
    "cpuinfo": "model name: Example",
    "node": [
        {
            "cpulist": "0-1",
            "distance": "10 20",
            "meminfo": {"MemTotal": 4 * KIB_OF_GIB, "MemFree": 4096},
            "access0": {"read_bandwidth": 20_000},
        },
        {
            "cpulist": "",
            "distance": "20 10",
            "meminfo": {"MemTotal": KIB_OF_GIB, "MemFree": 4096},
            "access0": {"read_bandwidth": 90_000, "initiators": [0]},
        },
    ],
}
"""One node with CPUs and a faster one without."""


def test_what_stays_the_same_from_launch_to_launch_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES"):
        monkeypatch.delenv(name, raising=False)
    write_machine(MACHINE, tmp_path)
    found = nodes(str(tmp_path / "sys"), str(tmp_path / "proc"))
    ordinary, fast = found["nodes"]
    assert ordinary == {
        "id": 0,
        "cpus": [0, 1],
        "total_bytes": 4 * 2**30,
        "distances": {"0": 10, "1": 20},
        "initiators": [],
        "read_bandwidth": 20_000 * 2**20,
        "is_hbm": False,
    }
    assert (fast["cpus"], fast["initiators"], fast["is_hbm"]) == ([], [0], True)
    assert found["hbm"]["nodes"] == [1]
    assert found["hbm"]["rule"] and found["hbm"]["evidence"]
    assert found["hbm"]["emulated"] is False


def test_json_gives_back_what_this_machine_s_nodes_are() -> None:
    found = nodes()
    assert json.loads(json.dumps(found)) == found
    assert [node["id"] for node in found["nodes"]] == [n.id for n in hbmcomm.topology().nodes]
    cpus = {cpu for node in found["nodes"] for cpu in node["cpus"]}
    assert os.sched_getaffinity(0) <= cpus
