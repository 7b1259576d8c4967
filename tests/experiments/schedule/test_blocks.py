"""An experiment becomes randomised, paired blocks, the same ones for the same seed."""

import re
from collections import Counter
from dataclasses import replace
from itertools import groupby, product

from experiments.catalogue import spec
from experiments.model.arms import Arm, arms
from experiments.model.environment import DOCKER
from experiments.model.experiment import Experiment, Factors
from experiments.model.launch import Launch
from experiments.schedule import blocks as schedule

QUICK = spec.load("quick")
MANY = spec.restrict(spec.load("placement"), ranks="2,4", blocks=3)


def launches(asked: Experiment) -> list[Launch]:
    return [launch for block in schedule.schedule(asked, 1) for launch in block.launches]


def _moves(factors: Factors) -> list[tuple[str, int]]:
    """Each transport with the sizes up to its largest."""
    return [
        (transport, size)
        for transport, size in product(factors.transports, factors.sizes)
        if size <= factors.largest.get(transport, size)
    ]


def test_a_seed_decides_everything() -> None:
    assert schedule.schedule(QUICK, 7) == schedule.schedule(QUICK, 7)
    assert schedule.schedule(QUICK, 7) != schedule.schedule(QUICK, 8)


def test_every_block_holds_each_arm_once_and_the_aa_twin() -> None:
    arms = ["docker-default-one", "docker-tuned-one", "host", "host-again", "userland"]
    orders = {tuple(launch.arm for launch in b.launches) for b in schedule.schedule(QUICK, 1)}
    assert all(sorted(order) == arms for order in orders)
    assert len(orders) > 1, "each block has an order of its own"


def test_every_block_measures_every_cell_once_in_an_order_of_its_own() -> None:
    block, other, *_ = schedule.schedule(QUICK, 1)
    first, *others = block.launches
    factors = QUICK.factors
    every = product(factors.operations, factors.kinds, _moves(factors))
    assert Counter((c.operation, c.kind, (c.transport, c.bytes)) for c in first.cells) == Counter(
        every
    )
    assert all(launch.cells == first.cells for launch in others)  # the arms take turns
    assert set(first.cells) == set(other.launches[0].cells)
    assert first.cells != other.launches[0].cells


def test_all_cells_of_a_kind_follow_each_other_and_kinds_come_in_any_order() -> None:
    asked = spec.restrict(QUICK, blocks=12)
    orders = set()
    for block in schedule.schedule(asked, 1):
        first, *others = block.launches
        kinds = tuple(kind for kind, _ in groupby(first.plan, lambda cell: cell.kind))
        assert sorted(kinds) == sorted(asked.factors.kinds)
        assert all(launch.plan == first.plan for launch in others)
        assert set(first.plan) >= set(first.cells)
        orders.add(kinds)
    assert len(orders) == 2


def test_a_transport_with_a_largest_size_has_no_cell_beyond_it() -> None:
    cells = schedule.schedule(QUICK, 1)[0].launches[0].cells
    most = {
        name: max(c.bytes for c in cells if c.transport == name)
        for name in QUICK.factors.transports
    }
    assert most == {"direct": 2**22, "mpi": 2**22, "pickle": 2**19}


def test_what_varies_in_the_campaign_is_reported_beside_a_launch() -> None:
    planned = launches(spec.restrict(spec.load("placement"), ranks="4", blocks=1))
    shown = schedule.varied(planned)
    assert shown == {launch.name: f" ({launch.binding})" for launch in planned}
    assert set(shown.values()) == {" (packed)", " (spread)"}
    planned = launches(MANY)
    assert schedule.varied(planned) == {
        launch.name: f" ({launch.ranks} ranks, {launch.binding})" for launch in planned
    }
    assert set(schedule.varied(launches(QUICK)).values()) == {""}


def test_each_replicate_visits_every_combination_of_mpi_ranks_and_binding() -> None:
    asked = spec.restrict(MANY, mpis="openmpi,mpich")
    blocks = schedule.schedule(asked, 1)
    firsts = [block.launches[0] for block in blocks]
    places = [(first.mpi, first.ranks, first.binding) for first in firsts]
    assert len(blocks) == 3 * 8
    assert all(len(set(places[i : i + 8])) == 8 for i in range(0, 24, 8))


def test_all_launches_of_a_block_share_ranks_and_binding() -> None:
    for block in schedule.schedule(MANY, 1):
        assert len({(launch.ranks, launch.binding) for launch in block.launches}) == 1


def test_there_is_no_twin_without_a_host_arm() -> None:
    docker_only = spec.restrict(QUICK, environments="docker", profiles="tuned")
    (arm,) = arms(docker_only.launches, "openmpi")
    assert arm == Arm("docker-tuned-one", DOCKER, "tuned", "one")


def test_every_profile_in_every_layout_is_an_arm_of_each_engine() -> None:
    asked = spec.restrict(
        *(QUICK,), environments="docker,podman,charliecloud", profiles="all", layouts="one,isolated"
    )
    names = [arm.name for arm in arms(asked.launches, "openmpi")]
    assert names == [
        f"{engine}-{profile}-{layout}"
        for engine in ("docker", "podman")
        for profile in ("default", "tuned", "privileged")
        for layout in ("one", "isolated")
    ] + ["charliecloud"]


def test_an_emulated_machine_has_its_arms_and_no_twin() -> None:
    there = spec.restrict(QUICK, environments="vm:plain,vm-docker:plain", profiles="default,tuned")
    for block in schedule.schedule(there, 1):
        assert {
            (launch.arm, str(launch.environment), launch.layout) for launch in block.launches
        } == {
            ("vm-plain", "vm:plain", ""),
            ("vm-docker-plain-default-one", "vm-docker:plain", "one"),
            ("vm-docker-plain-tuned-one", "vm-docker:plain", "one"),
        }
        assert len(block.launches) == 3


def test_launches_have_names_of_their_own_that_files_and_containers_may_have() -> None:
    assert len({launch.name for launch in launches(MANY)}) == len(launches(MANY))
    there = spec.restrict(QUICK, environments="vm-docker:knl-snc4-flat")
    names = [launch.name for launch in launches(there)]
    assert "0000-vm-docker-knl-snc4-flat-tuned-one" in names
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]+", name) for name in names)


def test_the_order_of_turns_comes_from_the_seed_of_the_campaign() -> None:
    launch, again, other = (schedule.schedule(QUICK, seed)[0].launches[0] for seed in (7, 7, 8))
    assert (launch.seed, other.seed) == (7, 8)
    stored = Launch.from_dict(launch.to_dict())
    assert stored == launch
    assert stored.order.random() == again.order.random()
    assert replace(other, arm=launch.arm).order.random() != launch.order.random()
    block = schedule.schedule(QUICK, 7)[1].launches[0]
    assert replace(block, arm=launch.arm).order.random() != launch.order.random()
