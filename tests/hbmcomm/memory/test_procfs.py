"""What /proc tells of the processor, of GPUs and of this process's cpuset."""

from __future__ import annotations

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


def test_this_process_may_use_some_node() -> None:
    assert procfs.allowed_nodes(Path("/proc"))
