"""Limits of memory and CPU time are found in both versions of cgroups, in and out of containers."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hbmcomm.memory.capacity import headroom, quotas

MIB = 2**20
Groups = Callable[..., Path]
Files = dict[str, str]


@pytest.fixture
def proc(tmp_path: Path) -> Groups:
    """A /proc with a process in `group` of a mount of `version` that shows `root` as its top."""

    def write(version: str, group: str, root: str = "/") -> Path:
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


def v2(limit: str | int, used: int, cache: int = 0) -> Files:
    stat = f"anon 1\ninactive_file {cache}\n"
    return {"memory.max": str(limit), "memory.current": str(used), "memory.stat": stat}


def v1(limit: int, used: int, cache: int = 0) -> Files:
    stat = f"cache 1\ntotal_inactive_file {cache}\n"
    return {
        "memory.limit_in_bytes": str(limit),
        "memory.usage_in_bytes": str(used),
        "memory.stat": stat,
    }


def period(quota: str) -> Files:
    return {"cpu.cfs_quota_us": f"{quota}\n", "cpu.cfs_period_us": "100000\n"}


def write(folder: Path, limits: dict[str, Files]) -> None:
    for group, files in limits.items():
        (folder / group).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / group / name).write_text(text)


V1, V2, DOCKER = ("cgroup", "/job"), ("cgroup2", "/job"), ("cgroup", "/docker/abc", "/docker/abc")


@pytest.mark.parametrize(
    ("where", "limits", "room"),
    [
        # limit less usage plus cold cache less a margin
        (V2, {"job": v2(100 * MIB, 60 * MIB, 10 * MIB)}, 50 * MIB - 100 * MIB // 32),
        (V1, {"job": v1(100 * MIB, 60 * MIB, 10 * MIB)}, 50 * MIB - 100 * MIB // 32),
        # a tighter limit above counts
        (
            ("cgroup2", "/job/step"),
            {"job/step": v2("max", 5 * MIB), "job": v2(20 * MIB, 15 * MIB)},
            5 * MIB - 20 * MIB // 32,
        ),
        # in a container the mount shows the own group
        (DOCKER, {".": v1(64 * MIB, 60 * MIB)}, 2 * MIB),
        # a private namespace says root and means the mount
        (("cgroup2", "/"), {".": v2(64 * MIB, 60 * MIB)}, 2 * MIB),
        # of a large limit no more than 64 MiB is kept back
        (V2, {"job": v2(2**40, MIB)}, 2**40 - 65 * MIB),
        # usage past the limit leaves nothing
        (V2, {"job": v2(MIB, 2 * MIB)}, 0),
        # no limit, which version 1 spells as a number
        (V2, {"job": v2("max", MIB)}, sys.maxsize),
        (V1, {"job": v1(2**63 - 4096, MIB)}, sys.maxsize),
    ],
)
def test_room_is_what_the_nearest_limit_leaves(
    proc: Groups, tmp_path: Path, where: tuple[str, ...], limits: dict[str, Files], room: int
) -> None:
    write(tmp_path / "fs", limits)
    assert headroom(proc(*where)) == room


@pytest.mark.parametrize(
    ("where", "limits", "cpus"),
    [
        (V1, {"job": period("50000")}, [0.5]),
        # every quota up the tree counts, the nearest first
        (
            ("cgroup2", "/pod/job/step"),
            {
                "pod/job/step": {"cpu.max": "max 100000\n"},
                "pod/job": {"cpu.max": "200000 100000\n"},
                "pod": {"cpu.max": "300000 100000\n"},
            },
            [2.0, 3.0],
        ),
        # in a container the quota is that of the mount
        (DOCKER, {".": period("200000")}, [2.0]),
        # no quota, and no sense
        *(
            (V2, {"job": {"cpu.max": text}}, [])
            for text in ("max 100000\n", "", "much\n", "100000 0\n")
        ),
        # which version 1 spells as minus one
        (V1, {"job": period("-1")}, []),
    ],
)
def test_quotas_are_those_of_all_groups_above(
    proc: Groups,
    tmp_path: Path,
    where: tuple[str, ...],
    limits: dict[str, Files],
    cpus: list[float],
) -> None:
    write(tmp_path / "fs", limits)
    assert [quota.cpus for quota in quotas(proc(*where))] == cpus


def test_a_quota_names_its_group(proc: Groups, tmp_path: Path) -> None:
    write(tmp_path / "fs", {"job": {"cpu.max": "250000 100000\n"}})
    found = quotas(proc("cgroup2", "/job"))
    state = (tmp_path / "fs/job").stat()
    assert found == (((state.st_dev, state.st_ino), 2.5),)


def test_without_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert headroom(tmp_path) == sys.maxsize
    assert quotas(tmp_path) == ()


def test_this_process_has_room_left() -> None:
    assert headroom() > MIB
