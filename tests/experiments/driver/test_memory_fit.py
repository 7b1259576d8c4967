"""Buffers of launches that are alive together are counted on the machine and on each HBM node."""

from dataclasses import replace

import pytest

import hbmcomm
from experiments.catalogue import spec
from experiments.driver import memory_fit
from experiments.model.launch import Cell, Launch
from experiments.schedule import footprint
from experiments.schedule.blocks import schedule

pytestmark = pytest.mark.usefixtures("quadrants")

MIB = 2**20


@pytest.fixture
def launch() -> Launch:
    """Two ranks, each with 2 MiB of hbw."""
    asked = spec.restrict(spec.load("quick"), sizes=(MIB,), blocks=1)
    first = schedule(asked, 1)[0].launches[0]
    return replace(first, ranks=2, cells=(Cell("allreduce", "mpi", "hbw", "local", MIB),))


@pytest.fixture
def quadrants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes with a CPU each, and beside each a node of HBM with 10 MiB free."""
    here = hbmcomm.topology()
    far = {0: {0: 10, 1: 21, 2: 31, 3: 41}, 1: {0: 21, 1: 10, 2: 41, 3: 31}, 2: {}, 3: {}}
    nodes = tuple(
        replace(
            here.nodes[0],
            id=number,
            cpus=(number,) if number < 2 else (),
            distances=far[number],
            available_bytes=10 * MIB,
            is_hbm=number >= 2,
        )
        for number in range(4)
    )
    finding = replace(here.hbm, nodes=(2, 3))
    monkeypatch.setattr(hbmcomm, "topology", lambda: replace(here, nodes=nodes, hbm=finding))
    monkeypatch.setattr(memory_fit, "cpus_by_node", lambda: {0: (0,), 1: (1,), 2: (), 3: ()})
    monkeypatch.setattr(memory_fit.facts, "available_memory", lambda: 2**40)


def test_each_hbm_node_has_room_for_the_ranks_beside_it(launch: Launch) -> None:
    assert footprint.own_bytes(launch, 1, 0) == 2 * MIB
    assert memory_fit.fits([launch] * 4)  # 8 of 10 MiB on each node
    assert not memory_fit.fits([launch] * 5)  # nothing is left for the kernel


def test_a_machine_holds_its_share_of_the_ranks(launch: Launch) -> None:
    doubled = replace(launch, ranks=4)
    assert memory_fit.fits([doubled] * 4, nodes=2) and not memory_fit.fits([doubled] * 5, nodes=2)


def test_ranks_that_are_packed_share_the_nearest_node(launch: Launch) -> None:
    crowded = replace(launch, ranks=6)  # 3 on each CPU
    assert memory_fit.fits([crowded])
    assert not memory_fit.fits([crowded] * 2)


def test_kinds_on_all_hbm_nodes_are_dealt_out_and_others_are_not_counted(launch: Launch) -> None:
    every = replace(launch, ranks=1, cells=(replace(launch.cells[0], kind="hbw_interleave"),))
    assert memory_fit.fits([every] * 9) and not memory_fit.fits([every] * 10)
    ordinary = replace(launch, cells=(replace(launch.cells[0], kind="regular"),))
    assert memory_fit.fits([ordinary] * 100)


def test_baselines_take_no_room_on_hbm_nodes(launch: Launch) -> None:
    assert memory_fit.fits([launch] * 4 + [replace(launch, program="threads")] * 9)
