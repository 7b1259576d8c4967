"""Machines with a name: the KNL that explains the paper's speed-up, and curves of speed."""

import pytest

from hbmcomm.costmodel import (
    MACHINES,
    CostModelError,
    Memory,
    Model,
    Parameters,
    Part,
    known,
    network,
)

LONG = Part("shared", Parameters(1e-6, 5.0, 0.0, 1.0, 1.2, 2.0))
BCAST = Model("bcast", "regular", 0.1, 0, LONG, LONG)


def test_hbm_of_knights_landing_gives_what_the_paper_found() -> None:
    for ranks, packed, ratio in ((2, False, 1.1), (16, False, 2.1), (16, True, 4.8)):
        regular, hbw = (
            BCAST.seconds(ranks, 16 * 2**20, known("knl"), kind=kind, packed=packed)
            for kind in ("regular", "hbw")
        )
        assert regular / hbw == pytest.approx(ratio, abs=0.05), (ranks, packed)


def test_the_paper_s_445_to_487_per_cent_are_ranks_packed_into_one_quadrant() -> None:
    there = known("knl")
    assert 4.45 <= there.speed("hbw", 16, packed=True) / there.speed("regular", 16, True) <= 4.87
    assert there.speed("hbw", 16) / there.speed("regular", 16) < 2.5


def test_more_ranks_never_get_less_of_a_memory_until_all_cores_are_busy() -> None:
    for there in map(known, MACHINES):
        for kind in there.memories:
            speeds = [there.speed(kind, ranks) for ranks in (1, 2, 4, 8, 16, 32)]
            assert speeds == sorted(speeds), (there.name, kind)
            assert there.speed(kind, 4, packed=True) <= there.speed(kind, 4), (there.name, kind)


def test_speeds_between_points_are_in_proportion_on_logarithmic_axes() -> None:
    curve = Memory((2, 8), (1e9, 4e9))
    assert curve.speed(1) == pytest.approx(0.5e9)
    assert curve.speed(4) == pytest.approx(2e9)
    assert curve.speed(100) == pytest.approx(4e9)


@pytest.mark.parametrize(
    ("threads", "speeds"), [((), ()), ((1, 2), (1.0,)), ((2, 1), (1.0, 2.0)), ((1,), (0.0,))]
)
def test_what_is_no_curve_is_refused(threads: tuple[int, ...], speeds: tuple[float, ...]) -> None:
    with pytest.raises(CostModelError):
        Memory(threads, speeds)


def test_unknown_machines_networks_and_memories_are_refused_with_those_that_are_known() -> None:
    with pytest.raises(CostModelError, match="name one of knl, xeon-max, gh200"):
        known("cray")
    with pytest.raises(CostModelError, match="name one of 10gbit"):
        network("1gbit")
    with pytest.raises(CostModelError, match="name one of regular, hbw"):
        known("knl").speed("dax_kmem", 2)
