"""Noise floors of ratios, from A/A cells with a known ratio."""

import numpy as np
import pandas as pd
import pytest

from experiments.analysis import ratios
from tests.experiments.analysis.launch_medians import cells


def strays(*each: tuple[str, int, float]) -> ratios.Floors:
    """Floors of A/A cells with that MPI, size and ratio."""
    frame = pd.concat(
        cells({"host": [1.0] * 6, "host-again": [ratio] * 6}).assign(
            mpi=mpi, bytes=size, operation=str(number)
        )
        for number, (mpi, size, ratio) in enumerate(each)
    )
    return ratios.floors(frame)


def test_a_floor_is_of_its_mpi_and_band_of_sizes() -> None:
    found = strays(
        *[("mpich", 1024, 1.08)] * 8, *[("mpich", 2**20, 1.02)] * 8, *[("impi", 2**16, 0.96)] * 8
    )
    assert found.of("mpich", 8) == pytest.approx(0.08)
    assert found.of("mpich", 2**16) == pytest.approx(0.02)
    assert found.of("impi", 2**22) == pytest.approx(0.04)
    assert found.overall == pytest.approx(0.08)
    rows = found.frame().set_index(["mpi", "band"])
    assert rows.loc[("impi", "64 KiB to 4 MiB"), "cells"] == 8


def test_a_band_with_fewer_than_eight_cells_takes_the_floor_of_its_mpi_then_of_all() -> None:
    found = strays(*[("mpich", 1024, 1.08)] * 7, ("mpich", 2**20, 1.08), ("impi", 2**20, 1.08))
    assert found.of("mpich", 1024) == found.of("mpich", 2**20) == pytest.approx(0.08)
    assert found.of("impi", 2**20) == found.overall == pytest.approx(0.08)
    assert found.frame()["floor"].isna().all()
    few = strays(*[("mpich", 1024, 1.08)] * 7)
    assert np.isnan(few.of("mpich", 1024)) and np.isnan(few.overall)
    assert np.isnan(ratios.floors(cells({"host": [1.0]})).overall)


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (0, "below 4 KiB"),
        (4095, "below 4 KiB"),
        (4096, "4 to 64 KiB"),
        (2**16, "64 KiB to 4 MiB"),
        (2**22, "64 KiB to 4 MiB"),
        (2**22 + 4, "above 4 MiB"),
    ],
)
def test_every_size_is_in_one_band(size: int, name: str) -> None:
    assert ratios.band(size) == name


def test_groups_have_a_floor_of_their_own_where_they_are_eight() -> None:
    frame = pd.concat(
        cells({"host": [1.0] * 6, "host-again": [1.03] * 6}).assign(operation=str(number))
        for number in range(8)
    )
    assert ratios.group_floor(frame, ["operation"]) == pytest.approx(0.03)
    assert np.isnan(ratios.group_floor(frame[frame["operation"] != "0"], ["operation"]))
