"""What /proc shows of the processor, of GPUs and of this process's cpuset."""

import mmap
from pathlib import Path

from hbmcomm.memory import procfs


def test_the_first_processor_speaks_for_all(tmp_path: Path) -> None:
    text = "processor\t: 0\nmodel\t\t: 87\n\nprocessor\t: 1\nmodel\t\t: 99\n"
    (tmp_path / "cpuinfo").write_text(text)
    assert procfs.processor(tmp_path) == {"processor": "0", "model": "87"}


def test_without_cpuinfo_and_zoneinfo_processor_and_watermarks_are_unknown(tmp_path: Path) -> None:
    assert procfs.processor(tmp_path) == procfs.watermarks(tmp_path) == {}


def test_nvidias_driver_names_the_node_of_each_gpu(machine) -> None:
    assert procfs.gpu_nodes(machine("gh200").procfs) == {1: "0009:01:00.0"}


def test_the_cpuset_is_a_list_of_nodes(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text("Name:\tx\nMems_allowed:\t11\nMems_allowed_list:\t0,4\n")
    assert procfs.allowed_nodes(tmp_path) == (0, 4)


def test_a_node_keeps_the_high_watermarks_of_all_its_zones(tmp_path: Path) -> None:
    zones = "".join(
        f"Node {node}, zone {name:>8}\n  pages free     4970\n        min      5160\n"
        f"        high     {high}\n  pagesets\n    cpu: 0\n              high:  1720\n"
        for node, name, high in ((0, "DMA", 10), (0, "Normal", 5000), (2, "DMA32", 7740))
    )
    (tmp_path / "zoneinfo").write_text(zones)
    page = mmap.PAGESIZE
    assert procfs.watermarks(tmp_path) == {0: 5010 * page, 2: 7740 * page}


def test_this_process_may_use_some_node_of_which_the_kernel_keeps_something() -> None:
    assert procfs.allowed_nodes(Path("/proc"))
    assert sum(procfs.watermarks(Path("/proc")).values()) > 0
