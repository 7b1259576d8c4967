"""Noise floors of ratios, from A/A cells with a known ratio."""

import numpy as np
import pandas as pd
import pytest

from experiments.analysis import ratios, statistics
from tests.experiments.analysis.launch_medians import cells


def strays(*twins: tuple[str, int, float]) -> ratios.Floors:
    """Floors of A/A cells with that MPI, size and ratio."""
    frame = pd.concat(
        cells({"host": [1.0] * 6, "host-again": [ratio] * 6}).assign(
            mpi=mpi, bytes=size, operation=str(number)
        )
        for number, (mpi, size, ratio) in enumerate(twins)
    )
    return ratios.floors(frame)


def test_a_floor_is_of_its_mpi_where_that_has_cells_enough_and_else_of_its_band() -> None:
    floors = strays(
        *[("mpich", 1024, 1.08)] * 59, *[("impi", 1024, 1.02)] * 8, *[("impi", 2**20, 0.96)] * 18
    )
    assert floors.of("mpich", 8) == floors.of("impi", 8) == pytest.approx(0.08)
    assert floors.of("mpich", 2**16) == floors.of("impi", 2**22) == pytest.approx(0.04)
    assert floors.largest == pytest.approx(0.08)
    rows = floors.frame().set_index(["mpi", "band"])
    assert rows.loc[("mpich", "below 4 KiB"), ["share", "cells"]].tolist() == [0.95, 59]
    assert rows.loc[("impi", "below 4 KiB"), ["share", "cells"]].tolist() == [0.95, 67]
    assert rows.loc[("impi", "64 KiB to 4 MiB"), "share"] == pytest.approx(0.05 ** (1 / 18))


def test_a_band_with_fewer_than_eight_cells_has_no_floor_whatever_other_sizes_have() -> None:
    floors = strays(*[("mpich", 1024, 1.08)] * 7, *[("mpich", 2**20, 1.02)] * 60)
    assert np.isnan(floors.of("mpich", 1024))
    assert floors.of("mpich", 2**20) == floors.largest == pytest.approx(0.02)
    few = strays(*[("mpich", 1024, 1.08)] * 7)
    assert np.isnan(few.largest)
    assert np.isnan(ratios.floors(cells({"host": [1.0]})).largest)


@pytest.mark.parametrize(
    ("cells", "shape"),
    [(8, "normal"), (18, "heavy"), (59, "normal"), (72, "heavy"), (150, "normal")],
)
def test_a_floor_holds_its_share_of_null_cells_in_95_of_100_campaigns(
    cells: int, shape: str
) -> None:
    """Whatever their distribution."""
    rng = np.random.default_rng(9)
    draw = rng.standard_normal if shape == "normal" else lambda size: rng.standard_t(3, size)
    fresh = np.sort(np.abs(draw(200_000)))
    bounds = [statistics.tolerance(np.abs(draw(cells)), 8) for _ in range(1000)]
    held = [np.searchsorted(fresh, bound.value) / fresh.size >= bound.share for bound in bounds]
    assert np.mean(held) >= 0.95 - 0.021  # three standard errors


def test_every_size_is_in_one_band() -> None:
    for sizes, name in (
        ((0, 4095), "below 4 KiB"),
        ((4096, 2**16 - 1), "4 to 64 KiB"),
        ((2**16, 2**22), "64 KiB to 4 MiB"),
        ((2**22 + 4,), "above 4 MiB"),
    ):
        assert {ratios.band(size) for size in sizes} == {name}


def test_groups_have_a_floor_of_their_own_where_they_are_eight() -> None:
    frame = pd.concat(
        cells({"host": [1.0] * 6, "host-again": [1.03] * 6}).assign(operation=str(number))
        for number in range(8)
    )
    twins = ratios.paired_ratio(frame, "arm", "host-again", "host")
    assert ratios.group_floor(twins, ["operation"]) == pytest.approx(0.03)
    assert np.isnan(ratios.group_floor(twins[twins["operation"] != "0"], ["operation"]))
