"""Limits of memory and CPU time are found in both versions of cgroups, in and out of containers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hbmcomm.memory.policy.cgroup import headroom, quotas

MIB = 2**20
Groups = Callable[..., Path]


@pytest.fixture
def proc(tmp_path: Path) -> Groups:
    """A /proc whose process is in `group` of a mount of `version` that shows `root` as its top."""

    def write(version: str, group: str, root: str = "/", **files: dict[str, str]) -> Path:
        options = "rw,cpu,cpuacct,memory" if version == "cgroup" else "rw"
        own = f"0::{group}\n"
        if version == "cgroup":
            own = f"9:cpuset:/other\n5:cpu,cpuacct:{group}\n4:memory:{group}\n0::/\n"
        (tmp_path / "self").mkdir()
        (tmp_path / "self/cgroup").write_text(own)
        (tmp_path / "self/mountinfo").write_text(
            f"31 23 0:28 {root} {tmp_path}/fs rw,nosuid shared:9 - {version} none {options}\n"
        )
        return tmp_path

    return write


def limits(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".", 1)).write_text(text)


def v2(limit: str, used: int, cache: int = 0) -> dict[str, str]:
    stat = f"anon 1\ninactive_file {cache}\n"
    return {"memory__max": limit, "memory__current": str(used), "memory__stat": stat}


def v1(limit: int, used: int, cache: int = 0) -> dict[str, str]:
    stat = f"cache 1\ntotal_inactive_file {cache}\n"
    return {
        "memory__limit_in_bytes": str(limit),
        "memory__usage_in_bytes": str(used),
        "memory__stat": stat,
    }


def test_version_2_leaves_limit_less_usage_plus_cold_cache_less_a_margin(
    proc: Groups, tmp_path: Path
) -> None:
    limits(tmp_path / "fs/job", **v2(str(100 * MIB), 60 * MIB, cache=10 * MIB))
    assert headroom(proc("cgroup2", "/job")) == 50 * MIB - 100 * MIB // 32


def test_version_1_counts_the_same(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job", **v1(100 * MIB, 60 * MIB, cache=10 * MIB))
    assert headroom(proc("cgroup", "/job")) == 50 * MIB - 100 * MIB // 32


def test_a_tighter_limit_above_counts(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job/step", **v2("max", 5 * MIB))
    limits(tmp_path / "fs/job", **v2(str(20 * MIB), 15 * MIB))
    assert headroom(proc("cgroup2", "/job/step")) == 5 * MIB - 20 * MIB // 32


def test_in_a_container_the_mount_shows_the_own_group(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs", **v1(64 * MIB, 60 * MIB))
    assert headroom(proc("cgroup", "/docker/abc", root="/docker/abc")) == 2 * MIB


def test_a_private_namespace_says_root_and_means_the_mount(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs", **v2(str(64 * MIB), 60 * MIB))
    assert headroom(proc("cgroup2", "/")) == 2 * MIB


def test_of_a_large_limit_no_more_than_64_mib_is_kept_back(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job", **v2(str(2**40), MIB))
    assert headroom(proc("cgroup2", "/job")) == 2**40 - 65 * MIB


def test_usage_past_the_limit_leaves_nothing(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job", **v2(str(MIB), 2 * MIB))
    assert headroom(proc("cgroup2", "/job")) == 0


def test_no_limit_is_a_very_large_number(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job", **v2("max", MIB))
    assert headroom(proc("cgroup2", "/job")) == sys.maxsize
    assert headroom(tmp_path / "nowhere") == sys.maxsize


def test_version_1_spells_no_limit_as_a_number(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job", **v1(2**63 - 4096, MIB))
    assert headroom(proc("cgroup", "/job")) == sys.maxsize


def cpus(proc: Path) -> list[float]:
    return [quota.cpus for quota in quotas(proc)]


def test_version_2_says_quota_and_period(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job", cpu__max="250000 100000\n")
    found = quotas(proc("cgroup2", "/job"))
    state = (tmp_path / "fs/job").stat()
    assert found == (((state.st_dev, state.st_ino), 2.5),)


def test_version_1_says_them_in_two_files(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job", cpu__cfs_quota_us="50000\n", cpu__cfs_period_us="100000\n")
    assert cpus(proc("cgroup", "/job")) == [0.5]


def test_every_quota_up_the_tree_counts_the_nearest_first(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/pod/job/step", cpu__max="max 100000\n")
    limits(tmp_path / "fs/pod/job", cpu__max="200000 100000\n")
    limits(tmp_path / "fs/pod", cpu__max="300000 100000\n")
    assert cpus(proc("cgroup2", "/pod/job/step")) == [2.0, 3.0]


def test_in_a_container_the_quota_is_that_of_the_mount(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs", cpu__cfs_quota_us="200000\n", cpu__cfs_period_us="100000\n")
    assert cpus(proc("cgroup", "/docker/abc", root="/docker/abc")) == [2.0]


@pytest.mark.parametrize("text", ["max 100000\n", "", "much\n", "100000 0\n"])
def test_no_quota_and_no_sense_are_no_quota(proc: Groups, tmp_path: Path, text: str) -> None:
    limits(tmp_path / "fs/job", cpu__max=text)
    assert cpus(proc("cgroup2", "/job")) == []


def test_version_1_spells_no_quota_as_minus_one(proc: Groups, tmp_path: Path) -> None:
    limits(tmp_path / "fs/job", cpu__cfs_quota_us="-1\n", cpu__cfs_period_us="100000\n")
    assert cpus(proc("cgroup", "/job")) == []
    assert quotas(tmp_path / "nowhere") == ()


def test_this_process_has_room_left() -> None:
    assert headroom() > MIB
