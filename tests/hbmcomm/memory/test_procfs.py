"""What /proc shows of the processor, of GPUs and of this process's cpuset."""

import mmap
from pathlib import Path

from hbmcomm.memory import procfs


def test_the_first_processor_speaks_for_all(tmp_path: Path) -> None:
    text = "processor\t: 0\nmodel\t\t: 87\n\nprocessor\t: 1\nmodel\t\t: 99\n"
    (tmp_path / "cpuinfo").write_text(text)
    assert procfs.processor(tmp_path) == {"processor": "0", "model": "87"}


def test_no_cpuinfo_is_an_unknown_processor(tmp_path: Path) -> None:
    assert procfs.processor(tmp_path) == {}


def test_nvidias_driver_names_the_node_of_each_gpu(machine) -> None:
    assert procfs.gpu_nodes(machine("gh200").procfs) == {1: "0009:01:00.0"}


def test_the_cpuset_is_a_list_of_nodes(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text("Name:\tx\nMems_allowed:\t11\nMems_allowed_list:\t0,4\n")
    assert procfs.allowed_nodes(tmp_path) == (0, 4)


def test_a_node_keeps_the_high_watermarks_of_all_its_zones(tmp_path: Path) -> None:
    zone = (
        "Node {}, zone {:>8}\n  pages free     4970\n        min      5160\n        high     {}\n"
    )
    zones = [
        zone.format(0, "DMA", 10),
        zone.format(0, "Normal", 5000),
        zone.format(2, "DMA32", 7740),
    ]
    pageset = "  pagesets\n    cpu: 0\n              high:  1720\n"
    (tmp_path / "zoneinfo").write_text("".join(text + pageset for text in zones))
    page = mmap.PAGESIZE
    assert procfs.watermarks(tmp_path) == {0: 5010 * page, 2: 7740 * page}


def test_without_zoneinfo_no_watermarks_are_known(tmp_path: Path) -> None:
    assert procfs.watermarks(tmp_path) == {}


def test_the_kernel_keeps_something_of_this_machine() -> None:
    assert sum(procfs.watermarks(Path("/proc")).values()) > 0


def test_this_process_may_use_some_node() -> None:
    assert procfs.allowed_nodes(Path("/proc"))
