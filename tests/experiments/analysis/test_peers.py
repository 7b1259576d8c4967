"""Ratios are paired within a launch; the best MPI is the one with the lowest median ratio."""

import numpy as np
import pandas as pd
import pytest

from experiments.analysis.peers import against_peers, noise, own, slower_cells, tried
from experiments.analysis.statistics import Verdict
from tests.benches import medians


def only(frame: pd.DataFrame, **levels: object) -> pd.Series:
    for column, level in levels.items():
        frame = frame[frame[column] == level]
    (index,) = frame.index
    return frame.loc[index]


def test_a_ratio_is_paired_within_the_launch_and_not_of_medians() -> None:
    """A machine that is slow in a block slows both; medians over blocks would say 2, not 3."""
    direct = [1.0, 10.0, 2.0, 8.0, 4.0, 3.0]
    times = {("mpich", "direct"): direct, ("mpich", "mpi"): [3 * seconds for seconds in direct]}
    row = only(against_peers(medians(times)))
    assert (row["peer"], row["blocks"]) == ("mpich", 6)
    assert [row[column] for column in ("ratio", "low", "high")] == pytest.approx([3.0] * 3)


def test_the_interval_over_seven_blocks_has_the_least_and_the_greatest_for_its_ends() -> None:
    """It covers 1 - 2/2**7 = 98 %; one place further in, 88 %."""
    ratios = [1.1, 1.3, 1.2, 1.6, 1.25, 1.35, 1.15]
    row = only(against_peers(medians({("impi", "direct"): [1.0] * 7, ("impi", "mpi"): ratios})))
    assert [row[column] for column in ("ratio", "low", "high")] == pytest.approx([1.25, 1.1, 1.6])


def test_the_best_mpi_is_that_with_the_lowest_median_ratio_not_the_lowest_time() -> None:
    """MPICH's launches met a quicker machine: its time is the lowest, its ratio is not."""
    times = {("mpich", "direct"): 1.0, ("mpich", "mpi"): 2.0}
    times |= {("openmpi", "direct"): 2.0, ("openmpi", "mpi"): 3.0}
    times |= {("impi", "direct"): 2.0, ("impi", "mpi"): 5.0}
    assert only(against_peers(medians(times)), best=True)["peer"] == "openmpi"


def test_what_is_no_mpi_is_never_the_best_and_is_shown_where_it_did_best() -> None:
    times = {("mpich", "direct"): 1.0, ("mpich", "mpi"): 2.0, ("mpich", "pickle"): 1.5}
    times |= {("impi", "direct"): 1.0, ("impi", "mpi"): 3.0, ("impi", "pickle"): 1.2}
    peers = against_peers(medians(times))
    pickled = only(peers, peer="pickle")
    assert (pickled["flavour"], pickled["ratio"], pickled["best"]) == ("impi", 1.2, False)
    assert only(peers, best=True)["peer"] == "mpich"


def test_plain_meets_plain_and_persistent_persistent() -> None:
    plain = medians({("mpich", "direct"): 1.0, ("mpich", "mpi"): 2.0})
    persistent = medians({("mpich", "direct"): 0.5, ("mpich", "mpi"): 2.0}, form="persistent")
    peers = against_peers(pd.concat([plain, persistent]))
    assert only(peers, form="plain")["ratio"] == 2
    assert only(peers, form="persistent")["ratio"] == 4


def test_a_block_that_lacks_one_side_is_no_pair() -> None:
    """As where an interrupt ended the run, or a peer's result was wrong in one launch."""
    frame = medians({("mpich", "direct"): [1.0] * 7, ("mpich", "mpi"): [2.0] * 6 + [100.0]})
    frame = frame[(frame["block"] < 6) | (frame["transport"] == "direct")]
    assert only(against_peers(frame))["blocks"] == 6


def test_directs_own_time_is_over_all_launches_with_its_share_of_the_bound() -> None:
    row = only(own(medians({("mpich", "direct"): [1.0, 1.0], ("impi", "direct"): [2.0]})))
    assert row["seconds"] == 1
    assert row["share"] == 0.5


def twice(again: float, sizes: int, mpi: str = "mpich") -> pd.DataFrame:
    """Direct measured twice in cells of so many sizes below 4 KiB, the second time `again`."""
    times = {(mpi, "direct"): 1.0, (mpi, "direct-again"): again}
    return pd.concat([medians(times, size=8 * (n + 1)) for n in range(sizes)])


def test_noise_is_how_far_direct_strays_from_itself() -> None:
    frame = twice(1.04, 8)
    assert noise(frame) == pytest.approx(0.04)
    assert against_peers(frame).empty
    assert np.isnan(noise(medians({("mpich", "direct"): [1.0]})))
    assert np.isnan(noise(twice(1.04, 7))), "too few cells to tell"


def test_an_effect_is_held_against_the_noise_of_its_own_mpi() -> None:
    """5 % is beyond a floor of 1 % and within one of 20 %."""
    ratio = {"direct": 1.0, "mpi": 1.05}
    cell = medians({(mpi, name): ratio[name] for mpi in ("mpich", "impi") for name in ratio})
    peers = against_peers(pd.concat([twice(1.01, 59), twice(1.2, 59, "impi"), cell]))
    for mpi, floor, due in (("mpich", 0.01, Verdict.DIFFERS), ("impi", 0.2, Verdict.BOUNDED)):
        row = only(peers, peer=mpi)
        assert (row["floor"], row["verdict"]) == (pytest.approx(floor), due)


def test_noise_is_that_of_every_form() -> None:
    quiet, loud = twice(1.0, 4), twice(1.2, 4).assign(form="nonblocking")
    assert noise(pd.concat([quiet, loud])) > 0.15


def test_an_mpi_is_shown_in_the_setting_that_did_best_in_the_cell() -> None:
    def cells(ratio: float, size: int, setting: str) -> pd.DataFrame:
        times = {("openmpi", "direct"): 1.0, ("openmpi", "mpi"): ratio}
        return medians(times, size=size, setting=setting)

    usual = [cells(1.4, 1024, "default"), cells(2.0, 2**20, "default")]
    other = [cells(0.9, 1024, "sm"), cells(3.0, 2**20, "sm")]
    mpich = medians({("mpich", "direct"): 1.0, ("mpich", "mpi"): 1.2})
    frame = pd.concat([*usual, *other, mpich])
    peers = against_peers(frame)
    small = only(peers, bytes=1024, peer="openmpi")
    assert (small["setting"], small["ratio"], small["best"]) == ("sm", 0.9, True)
    assert only(peers, bytes=2**20, peer="openmpi")["setting"] == "default"
    assert tried(frame) == 3


def test_the_interval_is_that_of_the_setting_that_is_shown() -> None:
    """A setting with too few blocks for an interval does not borrow another's."""
    long = medians({("openmpi", "direct"): 1.0, ("openmpi", "mpi"): 2.0})
    short = medians({("openmpi", "direct"): [1.0], ("openmpi", "mpi"): [1.5]}, setting="sm")
    row = only(against_peers(pd.concat([long, short])))
    assert (row["setting"], row["ratio"], row["blocks"]) == ("sm", 1.5, 1)
    assert np.isnan(row["low"]) and np.isnan(row["high"])


def test_another_build_is_paired_over_the_launches_of_all_mpis_and_settings() -> None:
    """What starts the ranks does not change it: the launches of a block are one replicate."""
    three = {("mpich", "direct"): [1.0] * 3, ("mpich", "other-build"): [0.9] * 3}
    four = {("openmpi", "direct"): [2.0] * 4, ("openmpi", "other-build"): [2.2] * 4}
    row = only(against_peers(pd.concat([medians(three), medians(four, setting="sm")])))
    assert (row["peer"], row["flavour"], row["best"]) == ("other-build", "any", False)
    assert (row["blocks"], row["ratio"]) == (4, pytest.approx((0.9 * 1.1) ** 0.5))


def test_a_cell_is_slower_where_the_whole_interval_lies_below_three_per_cent() -> None:
    ratios = {
        8: [0.90, 0.91, 0.92, 0.93, 0.94, 0.95],
        16: [0.90, 0.91, 0.92, 0.93, 1.01, 1.02],
        32: [0.98] * 6,
        64: [0.9],
        128: [0.99],
    }
    times = {
        size: {("mpich", "direct"): [1.0] * len(seconds), ("mpich", "other-build"): seconds}
        for size, seconds in ratios.items()
    }
    frame = pd.concat([medians(by_contender, size=size) for size, by_contender in times.items()])
    assert slower_cells(against_peers(frame)).empty, "no noise floor is known"
    for again, slower in ((1.01, [8]), (1.2, [])):
        peers = against_peers(pd.concat([frame, twice(again, 8, "impi")]))
        assert slower_cells(peers)["bytes"].tolist() == slower, "64 B have no interval"


def test_our_own_contenders_are_no_peers() -> None:
    ours = ("direct", "direct-again", "other-build-again")
    assert against_peers(medians({("mpich", name): [1.0] for name in ours})).empty
