"""Ratios are paired within a launch; the best MPI is the one with the lowest median ratio."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from experiments.analysis.statistics import Verdict, median_ratio
from experiments.bench.compare import against_peers, noise, own, slower_cells, tried

Medians = Callable[..., pd.DataFrame]


def only(frame: pd.DataFrame, **levels: object) -> pd.Series:
    for column, level in levels.items():
        frame = frame[frame[column] == level]
    (index,) = frame.index
    return frame.loc[index]


def test_a_ratio_is_paired_within_the_launch_and_not_of_medians(medians: Medians) -> None:
    """A machine that is slow in a block slows both; medians over blocks would say 2, not 3."""
    direct = [1.0, 10.0, 2.0, 8.0, 4.0, 3.0]
    row = only(
        against_peers(
            medians({("mpich", "direct"): direct, ("mpich", "mpi"): [3 * each for each in direct]})
        )
    )
    assert (row["peer"], row["ratio"], row["low"], row["high"], row["blocks"]) == (
        "mpich",
        *(pytest.approx(3.0), pytest.approx(3.0), pytest.approx(3.0)),
        6,
    )


def test_the_interval_is_bca_over_blocks(medians: Medians) -> None:
    ratios = [1.1, 1.3, 1.2, 1.6, 1.25, 1.35, 1.15]
    row = only(against_peers(medians({("impi", "direct"): [1.0] * 7, ("impi", "mpi"): ratios})))
    assert (row["ratio"], row["low"], row["high"]) == tuple(median_ratio(ratios))


def test_the_best_mpi_is_that_with_the_lowest_median_ratio_not_the_lowest_time(
    medians: Medians,
) -> None:
    """MPICH's launches met a quicker machine: its time is the lowest, its ratio is not."""
    found = against_peers(
        medians(
            {
                ("mpich", "direct"): [1.0] * 6,
                ("mpich", "mpi"): [2.0] * 6,
                ("openmpi", "direct"): [2.0] * 6,
                ("openmpi", "mpi"): [3.0] * 6,
                ("impi", "direct"): [2.0] * 6,
                ("impi", "mpi"): [5.0] * 6,
            }
        )
    )
    assert only(found, best=True)["peer"] == "openmpi"


def test_what_is_no_mpi_is_never_the_best_and_is_shown_where_it_did_best(medians: Medians) -> None:
    found = against_peers(
        medians(
            {
                ("mpich", "direct"): [1.0] * 6,
                ("mpich", "mpi"): [2.0] * 6,
                ("mpich", "pickle"): [1.5] * 6,
                ("impi", "direct"): [1.0] * 6,
                ("impi", "mpi"): [3.0] * 6,
                ("impi", "pickle"): [1.2] * 6,
            }
        )
    )
    pickled = only(found, peer="pickle")
    assert (pickled["flavour"], pickled["ratio"], pickled["best"]) == ("impi", 1.2, False)
    assert only(found, best=True)["peer"] == "mpich"


def test_plain_meets_plain_and_persistent_persistent(medians: Medians) -> None:
    found = against_peers(
        pd.concat(
            [
                medians({("mpich", "direct"): [1.0] * 6, ("mpich", "mpi"): [2.0] * 6}),
                medians(
                    {("mpich", "direct"): [0.5] * 6, ("mpich", "mpi"): [2.0] * 6},
                    form="persistent",
                ),
            ]
        )
    )
    assert only(found, form="plain")["ratio"] == 2
    assert only(found, form="persistent")["ratio"] == 4


def test_a_block_that_lacks_one_side_is_no_pair(medians: Medians) -> None:
    """As where an interrupt ended the run, or a peer's result was wrong in one launch."""
    frame = medians({("mpich", "direct"): [1.0] * 7, ("mpich", "mpi"): [2.0] * 6 + [100.0]})
    frame = frame[(frame["block"] < 6) | (frame["transport"] == "direct")]
    assert only(against_peers(frame))["blocks"] == 6


def test_few_blocks_have_a_ratio_and_no_interval(medians: Medians) -> None:
    row = only(against_peers(medians({("mpich", "direct"): [1.0], ("mpich", "mpi"): [2.0]})))
    assert row["ratio"] == 2
    assert np.isnan(row["low"]) and np.isnan(row["high"])


def test_directs_own_time_is_over_all_launches_with_its_share_of_the_bound(
    medians: Medians,
) -> None:
    row = only(own(medians({("mpich", "direct"): [1.0, 1.0], ("impi", "direct"): [2.0]})))
    assert row["seconds"] == 1
    assert row["share"] == 0.5


def twice(medians: Medians, again: float, sizes: int, mpi: str = "mpich") -> pd.DataFrame:
    """Direct measured twice in cells of so many sizes below 4 KiB, the second time `again`."""
    times = {(mpi, "direct"): [1.0] * 6, (mpi, "direct-again"): [again] * 6}
    return pd.concat([medians(times, size=8 * (n + 1)) for n in range(sizes)])


def test_noise_is_how_far_direct_strays_from_itself(medians: Medians) -> None:
    frame = twice(medians, 1.04, 8)
    assert noise(frame) == pytest.approx(0.04)
    assert against_peers(frame).empty
    assert np.isnan(noise(medians({("mpich", "direct"): [1.0]})))
    assert np.isnan(noise(twice(medians, 1.04, 7))), "too few cells to tell"


def test_an_effect_is_held_against_the_noise_of_its_own_mpi(medians: Medians) -> None:
    """5 % is beyond a floor of 1 % and within one of 20 %."""
    ratio = {"direct": 1.0, "mpi": 1.05}
    frame = pd.concat(
        [
            twice(medians, 1.01, 8),
            twice(medians, 1.2, 8, "impi"),
            medians(
                {(mpi, each): [ratio[each]] * 6 for mpi in ("mpich", "impi") for each in ratio}
            ),
        ]
    )
    found = against_peers(frame)
    assert only(found, peer="mpich")["floor"] == pytest.approx(0.01)
    assert only(found, peer="mpich")["verdict"] == Verdict.DIFFERS
    assert only(found, peer="impi")["floor"] == pytest.approx(0.2)
    assert only(found, peer="impi")["verdict"] == Verdict.BOUNDED


def test_noise_is_that_of_every_form(medians: Medians) -> None:
    quiet, loud = twice(medians, 1.0, 4), twice(medians, 1.2, 4).assign(form="nonblocking")
    assert noise(pd.concat([quiet, loud])) > 0.15


def test_an_mpi_is_shown_in_the_setting_that_did_best_in_the_cell(medians: Medians) -> None:
    def cells(ratio: float, large: float, **setting: str) -> pd.DataFrame:
        return pd.concat(
            [
                medians(
                    {("openmpi", "direct"): [1.0] * 6, ("openmpi", "mpi"): [ratio] * 6}, **setting
                ),
                medians(
                    {("openmpi", "direct"): [1.0] * 6, ("openmpi", "mpi"): [large] * 6},
                    size=2**20,
                    **setting,
                ),
            ]
        )

    frame = pd.concat(
        [
            cells(1.4, 2.0),
            cells(0.9, 3.0, setting="sm"),
            medians({("mpich", "direct"): [1.0] * 6, ("mpich", "mpi"): [1.2] * 6}),
        ]
    )
    found = against_peers(frame)
    small = only(found, bytes=1024, peer="openmpi")
    assert (small["setting"], small["ratio"], small["best"]) == ("sm", 0.9, True)
    assert only(found, bytes=2**20, peer="openmpi")["setting"] == "default"
    assert tried(frame) == 3


def test_the_interval_is_that_of_the_setting_that_is_shown(medians: Medians) -> None:
    """A setting with too few blocks for an interval does not borrow another's."""
    frame = pd.concat(
        [
            medians({("openmpi", "direct"): [1.0] * 6, ("openmpi", "mpi"): [2.0] * 6}),
            medians({("openmpi", "direct"): [1.0], ("openmpi", "mpi"): [1.5]}, setting="sm"),
        ]
    )
    row = only(against_peers(frame))
    assert (row["setting"], row["ratio"], row["blocks"]) == ("sm", 1.5, 1)
    assert np.isnan(row["low"]) and np.isnan(row["high"])


def test_another_build_is_paired_over_the_launches_of_all_mpis_and_settings(
    medians: Medians,
) -> None:
    """What starts the ranks does not change it, so that no launch is chosen over another."""
    frame = pd.concat(
        [
            medians({("mpich", "direct"): [1.0] * 3, ("mpich", "other-build"): [0.9] * 3}),
            medians(
                {("openmpi", "direct"): [2.0] * 4, ("openmpi", "other-build"): [2.2] * 4},
                setting="sm",
            ),
        ]
    )
    row = only(against_peers(frame))
    assert (row["peer"], row["flavour"], row["blocks"], row["best"]) == (
        *("other-build", "any", 7),
        False,
    )
    assert row["ratio"] == pytest.approx(1.1)


def test_a_cell_is_slower_where_the_whole_interval_lies_below_three_per_cent(
    medians: Medians,
) -> None:
    def cell(ratios: list[float], size: int) -> pd.DataFrame:
        return medians(
            {("mpich", "direct"): [1.0] * len(ratios), ("mpich", "other-build"): ratios}, size=size
        )

    frame = pd.concat(
        [
            cell([0.90, 0.91, 0.92, 0.93, 0.94, 0.95], 8),
            cell([0.90, 0.91, 0.92, 0.93, 1.01, 1.02], 16),
            cell([0.98] * 6, 32),
            cell([0.9], 64),
            cell([0.99], 128),
        ]
    )
    assert slower_cells(against_peers(frame)).empty, "no noise floor is known"
    for again, slower in ((1.01, [8]), (1.2, [])):
        found = against_peers(pd.concat([frame, twice(medians, again, 8, "impi")]))
        assert slower_cells(found)["bytes"].tolist() == slower, "64 B have no interval"


def test_our_own_contenders_are_no_peers(medians: Medians) -> None:
    ours = {("mpich", "direct"): [1.0], ("mpich", "direct-again"): [1.0]}
    assert against_peers(medians({**ours, ("mpich", "other-build-again"): [1.0]})).empty
