"""An experiment becomes randomised, paired blocks, the same ones for the same seed."""

from collections import Counter
from itertools import product

from experiments import schedule, spec
from experiments.schedule import Launch
from experiments.spec import Factors

QUICK = spec.load("quick")
MANY = spec.restrict(spec.load("placement"), ranks="2,4", blocks=3)


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
    for block in schedule.schedule(QUICK, 1):
        assert Counter(launch.arm for launch in block.launches) == Counter(
            ["host", "docker", "host-again"]
        )


def test_the_order_of_the_arms_differs_between_blocks() -> None:
    orders = {tuple(launch.arm for launch in b.launches) for b in schedule.schedule(QUICK, 1)}
    assert len(orders) > 1


def test_every_launch_measures_every_cell_once_in_an_order_of_its_own() -> None:
    first, second, *_ = schedule.schedule(QUICK, 1)[0].launches
    factors = QUICK.factors
    every = product(factors.operations, factors.kinds, _moves(factors))
    assert Counter((c.operation, c.kind, (c.transport, c.bytes)) for c in first.cells) == Counter(
        every
    )
    assert set(first.cells) == set(second.cells)
    assert first.cells != second.cells


def test_a_transport_with_a_largest_size_has_no_cell_beyond_it() -> None:
    cells = schedule.schedule(QUICK, 1)[0].launches[0].cells
    most = {name: max(c.bytes for c in cells if c.transport == name) for name in spec.TRANSPORTS}
    assert most == {"direct": 2**24, "mpi": 2**24, "pickle": 2**22}


def test_each_replicate_visits_every_combination_of_ranks_and_binding() -> None:
    blocks = schedule.schedule(MANY, 1)
    places = [(block.ranks, block.binding) for block in blocks]
    assert len(blocks) == 3 * 4
    assert all(len(set(places[i : i + 4])) == 4 for i in range(0, 12, 4))


def test_all_launches_of_a_block_share_ranks_and_binding() -> None:
    for block in schedule.schedule(MANY, 1):
        assert {(each.ranks, each.binding) for each in block.launches} == {
            (block.ranks, block.binding)
        }


def test_launch_names_are_unique() -> None:
    names = [launch.name for block in schedule.schedule(MANY, 1) for launch in block.launches]
    assert len(names) == len(set(names))


def test_there_is_no_twin_without_a_host_arm() -> None:
    docker_only = spec.restrict(QUICK, environments="docker")
    assert schedule.arms(docker_only) == [("docker", "docker")]


def test_a_launch_survives_its_stored_form() -> None:
    launch = schedule.schedule(QUICK, 1)[0].launches[0]
    assert Launch.from_dict(launch.to_dict()) == launch
