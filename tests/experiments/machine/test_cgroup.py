"""Load, stolen time and other work on a rank's CPU, as the kernel counts them."""

import os
import time
from pathlib import Path

import pytest

from experiments.machine import cgroup
from experiments.machine.facts import parse_list

STAT = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 100 20 30 4000 50 6 4 70 80 0\ncpu10 0 0 0 0 0 0 0 0 0 0\n"


def test_a_cpus_busy_and_stolen_seconds_leave_out_idleness_and_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "TICKS", 100)
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "loadavg").write_text("1.25 0.50 0.10 3/101 31072\n")
    counters = cgroup.counters(1, tmp_path)
    assert (counters["busy"], counters["stolen"], counters["load"]) == (1.6, 0.7, 1.25)


def test_what_the_kernel_does_not_show_is_unknown(tmp_path: Path) -> None:
    counters = cgroup.counters(1, tmp_path)
    assert (counters["busy"], counters["stolen"], counters["load"]) == (None, None, None)
    shown = cgroup.between(counters, counters)
    assert (shown["busy"], shown["stolen"], shown["load"]) == (None, None, [None, None])


def test_a_process_that_works_and_sleeps_shows_in_its_own_counters() -> None:
    cpu = min(os.sched_getaffinity(0))
    before = cgroup.counters(cpu)
    while time.process_time() - before["own"] < 0.02:
        pass
    time.sleep(0.001)
    shown = cgroup.between(before, cgroup.counters(cpu))
    assert isinstance(shown["own"], float) and shown["own"] > 0
    assert isinstance(shown["voluntary"], int) and shown["voluntary"] >= 1
    assert {"seconds", "load", "busy", "stolen", "own", "voluntary", "involuntary"} == set(shown)


def proc(folder: Path, groups: str, mounts: str) -> Path:
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(groups)
    (folder / "proc/self/mountinfo").write_text(mounts)
    return folder / "proc"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def test_version_2_tells_of_the_nearest_group_that_has_the_controller(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    write(mount / "a", cpuset__cpus__effective="0-3", cpuset__mems__effective="0")
    write(mount / "a/b", cpu__max="50000 100000")
    line = f"29 23 0:26 / {mount} rw - cgroup2 cgroup2 rw\n"
    assert cgroup.limits(proc(tmp_path, "0::/a/b\n", line)) == {
        "cpuset_cpus": "0-3",
        "cpuset_mems": "0",
        "cpu_quota": "50000 100000",
    }


def test_version_1_has_a_mount_for_each_controller(tmp_path: Path) -> None:
    write(tmp_path / "cpuset/job", cpuset__effective_cpus="2,6", cpuset__effective_mems="0-1")
    write(tmp_path / "cpu/job", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    mounts = (
        f"30 23 0:27 / {tmp_path}/cpuset rw - cgroup cgroup rw,cpuset\n"
        f"31 23 0:28 / {tmp_path}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    )
    assert cgroup.limits(proc(tmp_path, "4:cpuset:/job\n3:cpu,cpuacct:/job\n", mounts)) == {
        "cpuset_cpus": "2,6",
        "cpuset_mems": "0-1",
        "cpu_quota": "-1 100000",
    }


def test_a_container_sees_its_group_as_the_root_of_the_mount(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    write(mount, cpu__max="max 100000")
    line = f"29 23 0:26 /docker/4711 {mount} ro - cgroup2 cgroup2 rw\n"
    assert cgroup.limits(proc(tmp_path, "0::/docker/4711\n", line))["cpu_quota"] == "max 100000"


def test_without_control_groups_nothing_is_found(tmp_path: Path) -> None:
    assert set(cgroup.limits(tmp_path).values()) == {"not found"}


def test_this_process_is_reported_its_own_cpus_where_the_kernel_tells() -> None:
    shown = cgroup.limits()["cpuset_cpus"]
    assert shown == "not found" or os.sched_getaffinity(0) <= parse_list(shown)
