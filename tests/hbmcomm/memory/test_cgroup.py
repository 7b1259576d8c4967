"""The nearest memory limit counts, in both versions of cgroups, inside and outside a container."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hbmcomm.memory.cgroup import headroom

MIB = 2**20
Groups = Callable[..., Path]


@pytest.fixture
def proc(tmp_path: Path) -> Groups:
    """A /proc whose process is in `group` of a mount of `version` that shows `root` as its top."""

    def write(version: str, group: str, root: str = "/", **files: dict[str, str]) -> Path:
        options = "rw,memory" if version == "cgroup" else "rw"
        own = f"4:memory:{group}\n0::/\n" if version == "cgroup" else f"0::{group}\n"
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
        (folder / name.replace("__", ".")).write_text(text)


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


def test_this_process_has_room_left() -> None:
    assert headroom() > MIB
