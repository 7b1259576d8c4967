"""What a result keeps of a machine's nodes, from a tree as the kernel shows it."""

import hashlib
import json
import os
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import hbmcomm
from experiments.machine import facts, versions
from experiments.machine.facts import nodes
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


def test_what_stays_the_same_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES"):
        monkeypatch.delenv(name, raising=False)
    write_machine(MACHINE, tmp_path)
    topology = nodes(str(tmp_path / "sys"), str(tmp_path / "proc"))
    ordinary, fast = topology["nodes"]
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
    assert topology["hbm"]["nodes"] == [1]
    assert topology["hbm"]["rule"] and topology["hbm"]["evidence"]
    assert topology["hbm"]["emulated"] is False


def test_json_gives_back_what_this_machine_s_nodes_are() -> None:
    topology = nodes()
    assert json.loads(json.dumps(topology)) == topology
    assert [node["id"] for node in topology["nodes"]] == [n.id for n in hbmcomm.topology().nodes]
    cpus = {cpu for node in topology["nodes"] for cpu in node["cpus"]}
    assert os.sched_getaffinity(0) <= cpus


def test_every_version_is_that_of_this_process() -> None:
    installed = versions.versions()
    assert installed["numpy"] == np.__version__
    assert installed["mpi4py"] == metadata.version("mpi4py")
    assert installed["memkind"]
    assert all(isinstance(version, str) and version for version in installed.values())
    assert any(digit in installed["mpi"] for digit in "0123456789")
    assert "package" not in installed["mpi"], "where it was built"
    assert "\0" not in installed["mpi"]


def test_an_unreadable_library_has_no_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readable = tmp_path / "libmpi.so.40"
    readable.write_bytes(b"code")
    digest = hashlib.sha256(b"code").hexdigest()[:16]
    for path, expected in ((readable, digest), (tmp_path / "none/libmpi.so.40", "not found")):
        maps = f"7f00-7f01 r-xp 00001000 fe:00 17 {path}\n"
        monkeypatch.setattr(versions, "read", lambda _, maps=maps: maps)
        assert versions.hashes()["libmpi"] == expected


def test_every_setting_is_reported_in_words_or_as_not_found(tmp_path: Path) -> None:
    assert facts.read(tmp_path / "none") == "not found"
    assert facts.shm_bytes(str(tmp_path / "none")) == "not found"
    machine = facts.machine()
    assert set(facts.SETTINGS) <= set(machine)
    assert machine["kernel"] == os.uname().release
    assert all(isinstance(value, str) and value for value in machine.values())


def test_governors_are_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "CPU", tmp_path)
    assert facts.governors() == "not found"
    for cpu, governor in (("cpu0", "powersave"), ("cpu1", "performance"), ("cpu10", "powersave")):
        (tmp_path / cpu / "cpufreq").mkdir(parents=True)
        (tmp_path / cpu / "cpufreq/scaling_governor").write_text(f"{governor}\n")
    assert facts.governors() == "performance, powersave"


def test_the_largest_cache_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "CPU", tmp_path)
    assert facts.last_level_cache() == 32 * 2**20
    for index, size in enumerate(("32K", "1024K", "16M")):
        (tmp_path / f"cpu0/cache/index{index}").mkdir(parents=True)
        (tmp_path / f"cpu0/cache/index{index}/size").write_text(size + "\n")
    assert facts.last_level_cache() == 16 * 2**20


def test_memory_status_and_namespaces_are_those_of_this_machine_and_process() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < facts.available_memory() <= total
    assert facts.status()["Pid"] == str(os.getpid())
    assert facts.namespaces()["pid"].startswith("pid:[")


def test_the_threads_of_a_core_are_read_and_without_a_list_a_cpu_is_alone(tmp_path: Path) -> None:
    (tmp_path / "cpu68/topology").mkdir(parents=True)
    (tmp_path / "cpu68/topology/thread_siblings_list").write_text("0,68,136\n")
    assert facts.siblings(68, tmp_path) == {0, 68, 136}
    assert facts.siblings(5, tmp_path) == {5}


def test_only_kernel_options_that_move_a_benchmark_are_reported() -> None:
    line = "root=UUID=4711 quiet isolcpus=2-3 token=secret mitigations=off nosmt"
    assert facts.kernel_options(line) == "isolcpus=2-3 mitigations=off nosmt"
    assert facts.kernel_options("root=/dev/sda quiet") == "none of note"


OURS = {"sys_vendor": "hbmcomm", "product_name": "knl-snc4-flat", "product_version": "tcg"}


def test_only_the_firmware_of_our_own_machines_says_emulated(tmp_path: Path) -> None:
    for case, firmware, shown in (
        ("ours", OURS, "knl-snc4-flat (tcg)"),
        ("another's", OURS | {"sys_vendor": "QEMU"}, "no"),
        ("without a vendor", {"product_name": "knl-snc4-flat"}, "no"),
        ("ours that hides how it runs", {"sys_vendor": "hbmcomm"}, "not found (not found)"),
    ):
        (tmp_path / case).mkdir()
        for name, text in firmware.items():
            (tmp_path / case / name).write_text(f"{text}\n")
        assert facts.emulated(tmp_path / case) == shown, case


def test_policies_that_choose_nodes_are_read_off_the_kernels_list(tmp_path: Path) -> None:
    maps = tmp_path / "numa_maps"
    assert facts.memory_policy(maps) == "not found"
    maps.write_text("55a0 default heap anon=4 N0=4\n7f00 local file=/dev/shm/x N0=1\n")
    assert facts.memory_policy(maps) == "default"
    maps.write_text("55a0 prefer:8 heap anon=4 N8=4\n7f00 bind:8-9 file=/dev/shm/x N8=1\n")
    assert facts.memory_policy(maps) == "bind:8-9, prefer:8"


def test_a_container_has_the_kernel_of_its_machine() -> None:
    assert facts.kernel() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
