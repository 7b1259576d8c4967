"""Buffers of one kind at a time; where their pages are is asked again once they were measured."""

import os
from dataclasses import replace

import numpy as np
import pytest
from mpi4py import MPI

import hbmcomm
from experiments.measure.buffers import Unavailable
from experiments.measure.pools import Pools
from experiments.model.errors import Misplaced
from experiments.model.launch import Cell, Launch
from tests.launched import LAUNCH

KIB = 1024
REGULAR, HBW = ("regular", "local", "arena"), ("hbw", "local", "arena")


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Launch:
    """One rank, hbw emulated on node 0."""
    monkeypatch.setenv("MEMKIND_HBW_NODES", "0")
    cells = tuple(Cell("allreduce", "mpi", kind, "local", KIB) for kind in ("regular", "hbw"))
    return replace(LAUNCH, ranks=1, cells=cells)


def half_moved(array: np.ndarray) -> dict[int, int]:
    """What the kernel says of an array, half of which is on another node by now."""
    return dict.fromkeys((0, 1), array.nbytes // 2)


def made(launch: Launch) -> Pools:
    return Pools(MPI.COMM_SELF, launch, min(os.sched_getaffinity(0)))


def test_another_kind_closes_the_one_before(launch: Launch) -> None:
    pools = made(launch)
    first = pools.of(REGULAR)
    assert pools.of(REGULAR) is first
    assert pools.described == []
    assert pools.of(HBW).emulated
    assert [pool["kind"] for pool in pools.described] == ["regular"]
    assert first.communicators["mpi"] == MPI.COMM_NULL
    pools.close()
    pools.close()
    assert [pool["kind"] for pool in pools.described] == ["regular", "hbw"]
    assert {pool["source"] for pool in pools.described} <= {"memkind", "mmap"}, "no arena"


def test_what_cannot_be_had_is_tried_once(launch: Launch) -> None:
    pools = made(launch)
    for _ in range(2):
        with pytest.raises(Unavailable, match="dax_kmem"):
            pools.of(("dax_kmem", "local", "arena"))
    pools.close()
    assert pools.described == []


def test_pages_of_a_strict_kind_that_moved_while_they_were_measured_void_the_launch(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = made(launch)
    pools.of(HBW)
    monkeypatch.setattr(hbmcomm, "placement", half_moved)
    with pytest.raises(Misplaced, match=r"after timing, kind hbw: all .* belong on nodes \[0\]"):
        pools.close()


def test_other_pages_that_moved_are_noted(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    pools = made(launch)
    nbytes = sum(pools.of(REGULAR).placement.values())
    monkeypatch.setattr(hbmcomm, "placement", half_moved)
    pools.close()
    (shown,) = pools.described
    assert shown["placement"] == {"0": nbytes}
    assert shown["placement_after"] == {"0": nbytes // 2, "1": nbytes // 2}


def test_groups_of_torch_work_over_the_arena_without_a_cell_of_direct(launch: Launch) -> None:
    cells = tuple(replace(launch.cells[0], transport=name) for name in ("gloo", "torch"))
    pools = made(replace(launch, cells=cells))
    assert set(pools.of(REGULAR).communicators) == {"direct", "mpi"}
    pools.close()
    assert [pool["source"] for pool in pools.described] == ["arena"]
