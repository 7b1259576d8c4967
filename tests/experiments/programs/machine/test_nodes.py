"""What a result keeps of a machine's nodes, from a tree as the kernel shows it."""

import json
import os
from pathlib import Path

import pytest

import hbmcomm
from experiments.programs.machine.nodes import nodes

GIB = 2**30


@pytest.fixture
def roots(tmp_path: Path) -> tuple[str, str]:
    """/sys and /proc of a machine with one node of CPUs and a faster one without."""
    for number, (cpus, size, near) in enumerate((("0-1", 4, "10 20"), ("", 1, "20 10"))):
        node = tmp_path / f"sys/devices/system/node/node{number}"
        (node / "access0/initiators").mkdir(parents=True)
        (node / "cpulist").write_text(f"{cpus}\n")
        (node / "distance").write_text(f"{near}\n")
        (node / "meminfo").write_text(
            f"Node {number} MemTotal: {size * GIB // 1024} kB\nNode {number} MemFree: 4096 kB\n"
        )
        rate = 20_000 if cpus else 90_000
        (node / "access0/initiators/read_bandwidth").write_text(f"{rate}\n")
    (tmp_path / "sys/devices/system/node/node1/access0/initiators/node0").mkdir()
    (tmp_path / "sys/devices/system/node/online").write_text("0-1\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("model name: Example\n")
    return str(tmp_path / "sys"), str(tmp_path / "proc")


def test_what_stays_the_same_from_launch_to_launch_is_kept(
    roots: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES"):
        monkeypatch.delenv(name, raising=False)
    found = nodes(*roots)
    ordinary, fast = found["nodes"]
    assert ordinary == {
        "id": 0,
        "cpus": [0, 1],
        "total_bytes": 4 * GIB,
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
