"""A strict kind says no before the kernel kills; limits of both versions of cgroups are found."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hbmcomm
from hbmcomm import OutOfMemory
from hbmcomm.memory import capacity, kernel
from hbmcomm.memory.capacity import headroom, quotas
from tests.hbmcomm.memory.machine_files import put

MIB = 2**20
Files = dict[str, str]

pytestmark = pytest.mark.usefixtures("emulated_hbm")


def test_free_memory_is_less_than_all_of_it() -> None:
    total = hbmcomm.topology().node(0).total_bytes
    assert 0 < capacity.free_bytes((0,)) < total


def test_what_the_kernel_keeps_for_itself_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "kernel_reserves", lambda: {0: 2**60})
    assert capacity.free_bytes((0,)) == 0


def test_what_does_not_fit_names_kind_node_asked_free_and_a_way_out() -> None:
    with pytest.raises(OutOfMemory) as failure:
        capacity.require(hbmcomm.resolve("hbw"), 2**50)
    for word in ("hbw", "1,073,741,824 MiB", "node 0", "free", "hbw_preferred"):
        assert word in str(failure.value)
    assert isinstance(failure.value, MemoryError)


def test_populating_makes_every_page_be_there() -> None:
    length = 70 * MIB  # more than one step
    kind = hbmcomm.resolve("hbw")
    address = kernel.map_private(length)
    try:
        capacity.populate(kind, address, length)
        assert set(kernel.nodes_of(address, length // kernel.PAGE)) == {0}
    finally:
        kernel.unmap(address, length)


def test_a_check_serves_small_blocks_until_they_take_a_sharers_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks: list[tuple[int, ...]] = []

    def free_bytes(nodes: tuple[int, ...]) -> int:
        checks.append(nodes)
        return 64 * MIB

    monkeypatch.setattr(capacity, "free_bytes", free_bytes)
    monkeypatch.setattr(capacity, "LASTING", 60.0)
    kind = replace(hbmcomm.resolve("hbw"), nodes=(7,))
    for _ in range(9):
        assert list(capacity.steps(kind, MIB)) == [(0, MIB)]
    assert len(checks) == 3  # each serves 4 MiB, one part in 16
    monkeypatch.setattr(capacity, "LASTING", 0.0)
    for _ in range(5):
        list(capacity.steps(kind, MIB))
    assert len(checks) == 3 + 2  # the last that lasts serves three more


def test_steps_cover_a_block_and_get_smaller_where_less_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = 2000 * MIB
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: free)
    monkeypatch.setattr(capacity, "headroom", lambda: 2**62)
    at, lengths = 0, []
    for start, length in capacity.steps(hbmcomm.resolve("hbw"), 1999 * MIB + 5):
        assert start == at
        at += length
        free -= length
        lengths.append(length)
    assert at == 1999 * MIB + 5
    assert lengths[0] == 64 * MIB and lengths[-2] == 2 * MIB
    assert lengths[:-1] == sorted(lengths[:-1], reverse=True)


@pytest.mark.parametrize(
    ("ranks", "share"), [(2, 0.5), (2, 0.9), (2, 1.1), (5, 0.9), (5, 1.1), (16, 0.9), (16, 1.5)]
)
def test_ranks_that_take_the_last_of_a_node_all_at_once_never_take_more(
    monkeypatch: pytest.MonkeyPatch, ranks: int, share: float
) -> None:
    """All look, then all populate: the worst that can happen, again and again."""
    whole = free = 496 * MIB
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: max(0, free))
    monkeypatch.setattr(capacity, "headroom", lambda: 2**62)
    kind, wanted = hbmcomm.resolve("hbw"), int(share * whole / ranks)
    plans = [capacity.steps(kind, wanted) for _ in range(ranks)]
    refused = 0
    while plans:
        taking = []
        for plan in list(plans):
            try:
                taking.append(next(plan)[1])
            except (StopIteration, OutOfMemory) as end:
                refused += isinstance(end, OutOfMemory)
                plans.remove(plan)
        free -= sum(taking)
        assert free >= -capacity.SMALLEST_STEP * ranks  # which the margin of a node has
    assert bool(refused) == (share > 1)


def test_a_block_that_others_cut_short_says_what_was_had(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([300 * MIB, 100 * MIB])
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: next(left))
    plan = capacity.steps(hbmcomm.resolve("hbw"), 200 * MIB)
    assert next(plan) == (0, 18 * MIB)
    with pytest.raises(
        OutOfMemory, match=r"asked for 200 MiB on node 0 \(had 18 MiB of it.*100 MiB are free"
    ):
        next(plan)


def test_a_limit_of_the_cgroup_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "headroom", lambda: 3 * MIB)
    with pytest.raises(OutOfMemory, match=r"memory limit of this cgroup leaves 3 MiB.*--memory"):
        capacity.require(hbmcomm.resolve("hbw"), 4 * MIB)


def proc(folder: Path, limits: dict[str, Files], version: str, group: str, root: str = "/") -> Path:
    """A /proc with a process in `group` of a mount of `version` that shows `root` as its top."""
    options = "rw,cpu,cpuacct,memory" if version == "cgroup" else "rw"
    own = f"0::{group}"
    if version == "cgroup":
        own = f"9:cpuset:/other\n5:cpu,cpuacct:{group}\n4:memory:{group}\n0::/"
    put(folder / "self/cgroup", own)
    mount = f"31 23 0:28 {root} {folder}/fs rw,nosuid shared:9 - {version} none {options}"
    put(folder / "self/mountinfo", mount)
    for name, files in limits.items():
        for file, text in files.items():
            put(folder / "fs" / name / file, text)
    return folder


def test_a_mount_may_have_a_name_in_any_encoding(tmp_path: Path) -> None:
    put(tmp_path / "self/cgroup", "0::/")
    mount = b"31 23 0:28 / /mnt/caf\xe9 rw shared:9 - ext4 none rw\n"
    (tmp_path / "self/mountinfo").write_bytes(mount)
    assert quotas(tmp_path) == ()


def v2(limit: str | int, used: int, cache: int = 0) -> Files:
    stat = f"anon 1\ninactive_file {cache}"
    return {"memory.max": str(limit), "memory.current": str(used), "memory.stat": stat}


def v1(limit: int, used: int, cache: int = 0) -> Files:
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
    texts = (str(limit), str(used), f"cache 1\ntotal_inactive_file {cache}")
    return dict(zip(names, texts, strict=True))


def period(quota: str) -> Files:
    return {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": "100000"}


V1, V2, DOCKER = ("cgroup", "/job"), ("cgroup2", "/job"), ("cgroup", "/docker/abc", "/docker/abc")


def test_room_is_what_the_nearest_limit_leaves(tmp_path: Path) -> None:
    cases: list[tuple[tuple[str, ...], dict[str, Files], int]] = [
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
    ]
    for number, (where, limits, room) in enumerate(cases):
        folder = proc(tmp_path / str(number), limits, *where)
        assert headroom(folder) == room, (where, limits)


def test_quotas_are_those_of_all_groups_above(tmp_path: Path) -> None:
    cases: list[tuple[tuple[str, ...], dict[str, Files], list[float]]] = [
        (V1, {"job": period("50000")}, [0.5]),
        # every quota up the tree counts, the nearest first
        (
            ("cgroup2", "/pod/job/step"),
            {
                "pod/job/step": {"cpu.max": "max 100000"},
                "pod/job": {"cpu.max": "200000 100000"},
                "pod": {"cpu.max": "300000 100000"},
            },
            [2.0, 3.0],
        ),
        # in a container the quota is that of the mount
        (DOCKER, {".": period("200000")}, [2.0]),
        # no quota, and no sense
        *((V2, {"job": {"cpu.max": text}}, []) for text in ("max 100000", "", "much", "100000 0")),
        # which version 1 spells as minus one
        (V1, {"job": period("-1")}, []),
    ]
    for number, (where, limits, cpus) in enumerate(cases):
        folder = proc(tmp_path / str(number), limits, *where)
        assert [quota.cpus for quota in quotas(folder)] == cpus, (where, limits)


def test_a_quota_names_its_group(tmp_path: Path) -> None:
    job_quotas = quotas(proc(tmp_path, {"job": {"cpu.max": "250000 100000"}}, *V2))
    state = (tmp_path / "fs/job").stat()
    assert job_quotas == (((state.st_dev, state.st_ino), 2.5),)


def test_without_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert headroom(tmp_path) == sys.maxsize
    assert quotas(tmp_path) == ()


def test_this_process_has_room_left() -> None:
    assert headroom() > MIB
