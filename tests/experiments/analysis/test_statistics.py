"""Medians, intervals and paired ratios, against samples whose answer is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.analysis import ratios, statistics
from experiments.analysis.statistics import FACTORS

CELL = {
    "environment": "host",
    "profile": "",
    "layout": "",
    "mpi": "openmpi",
    "ranks": 2,
    "binding": "packed",
    "locality": "local",
    "operation": "bcast",
    "transport": "mpi",
    "kind": "regular",
    "emulated": False,
    "dtype": "float32",
    "bytes": 1024,
    "cadence": "isolated",
    "cache": "warm",
    "setting": "",
    "form": "plain",
}


def cells(times: dict[str, list[float]], column: str = "arm") -> pd.DataFrame:
    """Launch medians by the value of one column, one per block."""
    rows = [
        CELL
        | {"arm": "host", "block": block, "median_s": seconds, "bound_s": 1e-6, "skew_s": 1e-7}
        | {"p95_s": 2 * seconds, "p99_s": 3 * seconds if seconds > 1 else np.nan}
        | {"group": 1 + (block == 0), "n": 100}
        | {column: value}
        | ({"environment": value.removesuffix("-again")} if column == "arm" else {})
        for value, medians in times.items()
        for block, seconds in enumerate(medians)
    ]
    measured = [
        "median_s",
        "p95_s",
        "p99_s",
        "bound_s",
        "skew_s",
        "group",
        "n",
        "turns",
        "company",
        "contest",
    ]
    return pd.DataFrame(rows, columns=["block", "arm", *FACTORS, *measured])


def test_the_median_interval_covers_the_median_at_least_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    for n in (6, 15, 60):
        hits = 0
        for _ in range(1000):
            found = statistics.median_interval(rng.lognormal(size=n))
            hits += found.low <= 1.0 <= found.high
        assert hits >= 935  # 95 % less three standard errors


@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_than_six_samples_have_no_interval(n: int) -> None:
    found = statistics.median_interval(np.arange(n, dtype=float))
    assert found.value == (n - 1) / 2
    assert np.isnan(found.low)
    assert np.isnan(found.high)


def test_no_sample_has_no_median() -> None:
    assert np.isnan(statistics.median_interval([]).value)


def test_the_interval_of_paired_ratios_has_order_statistics_for_its_ends() -> None:
    found = statistics.median_ratio([1.0, 1.1, 0.9, 1.3, 1.05, 0.97])
    assert found == pytest.approx((np.sqrt(1.0 * 1.05), 0.9, 1.3))
    ten = statistics.median_ratio(np.exp(np.arange(10)))
    assert ten == pytest.approx(np.exp([4.5, 1, 8]))
    assert statistics.median_ratio([2.0] * 6) == pytest.approx((2.0, 2.0, 2.0))


def test_a_ratio_and_its_inverse_say_the_same() -> None:
    values = np.random.default_rng(5).lognormal(sigma=0.1, size=8)
    there, back = statistics.median_ratio(values), statistics.median_ratio(1 / values)
    assert (there.value, there.low) == pytest.approx((1 / back.value, 1 / back.high))


def test_five_blocks_are_too_few_for_an_interval_of_a_ratio() -> None:
    found = statistics.median_ratio([1.0, 1.1, 0.9, 1.3, 1.05])
    assert found.value == pytest.approx(1.05)
    assert np.isnan(found.low)
    assert np.isnan(statistics.median_ratio([]).value)


def test_holm_matches_the_worked_example_and_leaves_what_was_not_tested() -> None:
    found = statistics.holm([0.01, 0.04, float("nan"), 0.03])
    assert found[[0, 1, 3]] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(found[2])


def test_holm_is_at_least_as_strict_as_each_test_alone() -> None:
    p = np.random.default_rng(2).uniform(size=40)
    assert (statistics.holm(p) >= p).all()
    assert (statistics.holm(p) <= 1).all()


def test_six_blocks_reach_the_exact_signed_rank_p_that_is_promised() -> None:
    assert statistics.signed_rank(np.array([1.1, 1.2, 1.3, 1.15, 1.25, 1.35])) == 0.03125


def test_a_known_slowdown_is_found_in_pairs_although_the_machine_drifts() -> None:
    drift = [1.0, 3.0, 1.2, 2.5, 1.1, 2.0]
    found = ratios.paired_ratio(
        cells({"host": drift, "docker": [1.1 * each for each in drift]}), "arm", "docker", "host"
    )
    assert len(found) == 1
    assert found["ratio"][0] == pytest.approx(1.1)
    assert found["low"][0] == pytest.approx(1.1)
    assert found["blocks"][0] == 6
    assert found["p"][0] == 0.03125


def sizes(count: int, blocks: int) -> pd.DataFrame:
    """One series: docker slower in every block of every size, by another amount in each."""
    host = [1.0] * blocks
    docker = [1.1 + 0.01 * block for block in range(blocks)]
    each = [cells({"host": host, "docker": docker}) for _ in range(count)]
    return pd.concat([frame.assign(bytes=2**n) for n, frame in enumerate(each)])


def test_holms_family_is_one_series_of_a_figure() -> None:
    series = [sizes(15, 10).assign(operation=name) for name in ("bcast", "gather", "allreduce")]
    found = ratios.paired_ratio(pd.concat(series), "arm", "docker", "host")
    assert len(found) == 45
    assert found["p_holm"].tolist() == pytest.approx([15 * 2 * 0.5**10] * 45)
    assert found["least_p_holm"].tolist() == pytest.approx([15 * 2 * 0.5**10] * 45)


@pytest.mark.parametrize(("cells", "blocks"), [(1, 10), (25, 10), (26, 11), (102, 12), (180, 13)])
def test_a_claim_on_the_largest_of_many_cells_needs_more_blocks(cells: int, blocks: int) -> None:
    assert statistics.claim_blocks(cells) == blocks


@pytest.mark.parametrize("cells", [25, 102])
def test_so_many_ranges_from_block_to_block_hold_every_median_at_once(cells: int) -> None:
    rng = np.random.default_rng(5)
    draws = rng.standard_t(2, (2000, cells, statistics.claim_blocks(cells)))
    held = (draws.min(axis=2) <= 0) & (draws.max(axis=2) >= 0)
    assert held.all(axis=1).mean() > 0.94


def test_no_series_falls_below_the_least_p_that_its_blocks_can_reach() -> None:
    found = ratios.paired_ratio(sizes(8, 6), "arm", "docker", "host")
    assert found["least_p_holm"].tolist() == [0.25] * 8
    assert (found["p_holm"] >= found["least_p_holm"]).all()
    assert statistics.least_p(6) == 0.03125
    assert statistics.least_p(0) == 1
    alone = ratios.paired_ratio(sizes(8, 1), "arm", "docker", "host")
    assert alone["least_p_holm"].isna().all()


def test_a_block_that_lacks_an_arm_is_left_out_of_the_pairs() -> None:
    found = ratios.paired_ratio(
        cells({"host": [1.0, 1.0, 1.0], "docker": [2.0, 2.0]}), "arm", "docker", "host"
    )
    assert found["blocks"][0] == 2


def test_only_cells_timed_in_groups_of_one_size_are_paired() -> None:
    frame = cells({"host": [1.0, 1.0, 1.0], "docker": [2.0, 2.0, 9.0]})
    frame.loc[frame["median_s"] == 9.0, "group"] = 7
    found = ratios.paired_ratio(frame, "arm", "docker", "host")
    assert found["blocks"][0] == 2
    assert found["ratio"][0] == 2.0


def test_no_pair_in_groups_of_one_size_gives_no_ratio() -> None:
    frame = cells({"host": [1.0, 1.0], "docker": [2.0, 2.0]})
    frame.loc[frame["arm"] == "docker", "group"] = 7
    assert ratios.paired_ratio(frame, "arm", "docker", "host").empty


def test_launches_that_took_turns_are_paired_turn_by_turn() -> None:
    """The machine slows down in the middle of a block, and one turn of an arm is disturbed."""
    frame = cells({"host": [1.0], "docker": [1.5]}).assign(company="0000-docker 0000-host")
    host = (1.0, 1.0, 2.0, 2.0, 2.0)
    docker = (1.1, 1.1, 2.2, 9.0, 2.2)
    frame["turns"] = [host if arm == "host" else docker for arm in frame["arm"]]
    assert ratios.paired_ratio(frame, "arm", "docker", "host")["ratio"][0] == pytest.approx(1.1)
    apart = frame.assign(company=["0000-host" if a == "host" else "" for a in frame["arm"]])
    assert ratios.paired_ratio(apart, "arm", "docker", "host")["ratio"][0] == pytest.approx(1.5)


def test_in_a_block_of_pairs_each_arm_is_over_the_reference_launch_beside_it() -> None:
    """Between the pairs the machine became twice as slow."""
    first = cells({"docker": [1.1], "host": [1.0]}).assign(company="0-docker 0-host")
    later = cells({"host-again": [2.0], "host": [2.0]}).assign(company="0-again 0-host-beside")
    for both in (pd.concat([first, later]), pd.concat([later, first])):
        both = both.assign(turns=[()] * len(both))
        docker = ratios.paired_ratio(both, "arm", "docker", "host")["ratio"]
        again = ratios.paired_ratio(both, "arm", "host-again", "host")["ratio"]
        assert docker.tolist() == pytest.approx([1.1])
        assert again.tolist() == pytest.approx([1.0])


def test_launches_that_ran_alone_are_not_paired_turn_by_turn() -> None:
    frame = cells({"host": [1.0], "docker": [9.0]}).assign(company="")
    host, docker = (1.0, 1.0, 9.0), (1.0, 9.0, 9.0)
    frame["turns"] = [host if arm == "host" else docker for arm in frame["arm"]]
    assert ratios.paired_ratio(frame, "arm", "docker", "host")["ratio"][0] == pytest.approx(9.0)


def test_the_speed_up_of_a_kind_is_paired_within_each_launch() -> None:
    found = ratios.paired_ratio(
        cells({"regular": [2.0, 4.0], "hbw": [1.0, 1.0]}, "kind"), "kind", "regular", "hbw"
    )
    assert found["ratio"][0] == pytest.approx(np.sqrt(2.0 * 4.0))
    assert found["arm"][0] == "host"


def test_bindings_which_never_share_a_block_are_paired_by_replicate() -> None:
    frame = cells({"packed": [1.0, 2.0], "spread": [2.0, 4.0]}, "binding")
    frame.loc[frame["binding"] == "spread", "block"] += 10
    found = ratios.paired_ratio(frame, "binding", "spread", "packed")
    assert found["ratio"][0] == pytest.approx(2.0)
    assert found["blocks"][0] == 2


def test_an_arm_that_was_not_measured_gives_no_ratio() -> None:
    found = ratios.paired_ratio(cells({"host": [1.0]}), "arm", "docker", "host")
    assert found.empty
    assert {"ratio", "low", "high", "blocks", "p", "p_holm"} <= set(found)


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


def test_p99_is_paired_as_the_launches_have_it() -> None:
    frame = cells({"host": [2.0] * 6, "docker": [3.0] * 6}).assign(
        company="a b", turns=[(9.0,)] * 12
    )
    found = ratios.paired_ratio(frame, "arm", "docker", "host", "p99_s")
    assert found["ratio"].tolist() == pytest.approx([1.5])


def test_over_launches_gives_the_median_of_launch_medians_for_each_arm() -> None:
    found = statistics.over_launches(cells({"host": [1.0, 2.0, 3.0, 4.0, 5.0, 60.0]}))
    assert found["median_s"][0] == 3.5
    assert found["bus_bytes_per_s"][0] == 1024 / 3.5
    assert (found["low_s"][0], found["high_s"][0]) == (1.0, 60.0)
    assert found["launches"][0] == 6
    assert found["p95_s"][0] == 7.0
    assert found["p99_s"][0] == 12.0  # of the launches that have one
    assert found["skew_s"][0] == 1e-7
    assert found["n"][0] == 600
    assert found["group"][0] == 2


def test_the_signed_rank_test_keeps_its_size_when_there_is_no_effect() -> None:
    rng = np.random.default_rng(3)
    p = [statistics.signed_rank(np.exp(rng.normal(scale=0.1, size=10))) for _ in range(1000)]
    false_alarms = sum(each <= 0.05 for each in p)
    assert false_alarms <= stats.binom.ppf(0.999, 1000, 0.05)


@pytest.mark.parametrize(
    ("low", "high", "floor", "expected"),
    [
        (1.05, 1.09, 0.04, "differs"),
        (0.90, 0.95, 0.04, "differs"),
        (1.03, 1.09, 0.04, "bounded"),
        (0.99, 1.01, 0.04, "bounded"),  # no equivalence narrower than the floor
        (0.99, 1.01, 0.02, "equivalent"),
        (0.98, 1.02, 0.00, "equivalent"),
        (0.97, 1.01, 0.01, "bounded"),
        (1.005, 1.01, 0.003, "differs"),  # real, and small
        (1.5, 1.6, np.nan, "bounded"),
        (0.99, 1.01, np.nan, "bounded"),
        (np.nan, np.nan, 0.04, "too few blocks"),
    ],
)
def test_the_verdict_follows_from_the_whole_interval(
    low: float, high: float, floor: float, expected: str
) -> None:
    assert statistics.verdict(low, high, floor) == expected


def test_a_bound_is_no_narrower_than_the_floor() -> None:
    assert statistics.bounds(0.999, 1.002, 0.017) == pytest.approx((0.983, 1.017))
    assert statistics.bounds(0.96, 1.01, 0.017) == pytest.approx((0.96, 1.017))
    assert statistics.bounds(0.99, 1.01, np.nan) == (0.99, 1.01)


def test_a_groups_ratio_is_over_the_cells_that_every_block_has() -> None:
    whole = cells({"host": [1.0] * 6, "docker": [1.1] * 6})
    torn = cells({"host": [1.0] * 6, "docker": [9.0] * 5}).assign(bytes=2048)
    found = ratios.group_ratio(
        pd.concat([whole, torn]), "arm", "docker", "host", ["operation", "transport"]
    )
    assert found["ratio"].tolist() == pytest.approx([1.1])
    assert found["cells"].tolist() == [1]
    assert found["blocks"].tolist() == [6]
    none = ratios.group_ratio(whole, "arm", "podman", "host", ["operation"])
    assert none.empty
    assert set(none) == {"operation", *ratios.RATIO, "cells"}


def test_the_unpaired_ratio_is_of_the_medians_and_needs_six_on_each_side() -> None:
    above = [2.0, 2.2, 1.8, 2.1, 1.9, 50.0]
    found = statistics.unpaired_ratio(above, [1.0] * 6)
    assert found.value == pytest.approx(2.05)
    assert found.low <= found.value <= found.high
    assert found == statistics.unpaired_ratio(above, [1.0] * 6)
    assert np.isnan(statistics.unpaired_ratio(above, [1.0] * 5).low)
    assert statistics.unpaired_ratio([3.0] * 6, [2.0] * 6) == (1.5, 1.5, 1.5)


def test_transports_of_one_contest_are_compared_turn_by_turn() -> None:
    """The machine slows down by ten between two turns; medians over the launch would say 5.5."""
    frame = cells({"direct": [1.0] * 6, "mpi": [1.0] * 6}, "transport").assign(group=1, contest="3")
    frame["turns"] = [
        (1.0, 1.0, 10.0) if name == "direct" else (2.0, 20.0, 20.0) for name in frame["transport"]
    ]
    found = ratios.paired_ratio(frame, "transport", "mpi", "direct")
    assert found["ratio"].tolist() == [2.0]
    frame["contest"] = frame["transport"]
    assert ratios.paired_ratio(frame, "transport", "mpi", "direct")["ratio"].tolist() == [1.0]


def test_pooled_ratios_count_the_launches_of_all_mpis_alike() -> None:
    frames = [
        cells({"direct": [1.0] * 2, "again": [ratio] * 2}, "transport").assign(
            mpi=mpi, arm=mpi, group=1, contest=1
        )
        for mpi, ratio in (("mpich", 1.1), ("impi", 0.9))
    ]
    frame = pd.concat(frames)
    frame["turns"] = [()] * len(frame)
    (found,) = ratios.paired_ratio(frame, "transport", "again", "direct", pooled=True).itertuples()
    assert found.blocks == 4 and found.ratio == pytest.approx(1.0, abs=0.01)
