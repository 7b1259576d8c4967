"""Paired ratios, against launch medians with a known answer."""

import numpy as np
import pandas as pd
import pytest

from experiments.analysis import ratios, statistics
from tests.experiments.analysis.launch_medians import cells


def over_host(frame: pd.DataFrame, arm: str = "docker", value: str = "median_s") -> pd.DataFrame:
    return ratios.paired_ratio(frame, "arm", arm, "host", value)


def test_a_known_slowdown_is_found_in_pairs_although_the_machine_drifts() -> None:
    drift = [1.0, 3.0, 1.2, 2.5, 1.1, 2.0]
    paired = over_host(cells({"host": drift, "docker": [1.1 * seconds for seconds in drift]}))
    assert len(paired) == 1
    assert paired["ratio"][0] == pytest.approx(1.1)
    assert paired["low"][0] == pytest.approx(1.1)
    assert paired["blocks"][0] == 6
    assert paired["p"][0] == 0.03125


def sizes(count: int, blocks: int) -> pd.DataFrame:
    """One series: docker slower in every block of every size, by another amount in each."""
    host = [1.0] * blocks
    docker = [1.1 + 0.01 * block for block in range(blocks)]
    frames = [cells({"host": host, "docker": docker}) for _ in range(count)]
    return pd.concat([frame.assign(bytes=2**n) for n, frame in enumerate(frames)])


def test_holms_family_is_one_series_of_a_figure() -> None:
    series = [sizes(15, 10).assign(operation=name) for name in ("bcast", "gather", "allreduce")]
    paired = over_host(pd.concat(series))
    assert len(paired) == 45
    assert paired["p_holm"].tolist() == pytest.approx([15 * 2 * 0.5**10] * 45)
    assert paired["least_p_holm"].tolist() == pytest.approx([15 * 2 * 0.5**10] * 45)


def test_no_series_falls_below_the_least_p_that_its_blocks_can_reach() -> None:
    paired = over_host(sizes(8, 6))
    assert paired["least_p_holm"].tolist() == [0.25] * 8
    assert (paired["p_holm"] >= paired["least_p_holm"]).all()
    assert statistics.least_p(6) == 0.03125
    assert statistics.least_p(0) == 1
    alone = over_host(sizes(8, 1))
    assert alone["least_p_holm"].isna().all()


def test_a_block_that_lacks_an_arm_is_left_out_of_the_pairs() -> None:
    paired = over_host(cells({"host": [1.0, 1.0, 1.0], "docker": [2.0, 2.0]}))
    assert paired["blocks"][0] == 2


def test_only_cells_timed_in_groups_of_one_size_are_paired() -> None:
    frame = cells({"host": [1.0, 1.0, 1.0], "docker": [2.0, 2.0, 9.0]})
    frame.loc[frame["median_s"] == 9.0, "group"] = 7
    paired = over_host(frame)
    assert paired["blocks"][0] == 2
    assert paired["ratio"][0] == 2.0
    frame.loc[frame["arm"] == "docker", "group"] = 7
    assert over_host(frame).empty


@pytest.mark.parametrize(
    ("companies", "ratio"),
    [
        (["0000-docker 0000-host"] * 2, 1.1),
        (["0000-host", ""], 1.5),
        (["", ""], 1.5),  # they ran alone, at different times
    ],
)
def test_launches_that_took_turns_are_paired_turn_by_turn(
    companies: list[str], ratio: float
) -> None:
    """The machine slows down in the middle of a block, and one turn of an arm is disturbed."""
    frame = cells({"host": [1.0], "docker": [1.5]}).assign(company=companies)
    frame["turns"] = [(1.0, 1.0, 2.0, 2.0, 2.0), (1.1, 1.1, 2.2, 9.0, 2.2)]
    assert over_host(frame)["ratio"][0] == pytest.approx(ratio)


def test_in_a_block_of_pairs_each_arm_is_over_the_reference_launch_beside_it() -> None:
    """Between the pairs the machine became twice as slow."""
    first = cells({"docker": [1.1], "host": [1.0]}).assign(company="0-docker 0-host")
    later = cells({"host-again": [2.0], "host": [2.0]}).assign(company="0-again 0-host-beside")
    for both in (pd.concat([first, later]), pd.concat([later, first])):
        both = both.assign(turns=[()] * len(both))
        docker = over_host(both)["ratio"]
        again = over_host(both, "host-again")["ratio"]
        assert docker.tolist() == pytest.approx([1.1])
        assert again.tolist() == pytest.approx([1.0])


def test_two_arms_that_shared_no_turns_are_compared_through_the_reference_arm() -> None:
    """Between the pairs the machine became twice as slow; Docker takes 1.1 times as long."""
    frames = [
        cells({"docker": [1.1, 1.1], "host": [1.0, 1.0]}).assign(company="docker host"),
        cells({"userland": [2.0, 2.0], "host": [2.0, 2.0]}).assign(company="host-beside userland"),
    ]
    frame = pd.concat(frames).assign(group=1)
    frame["turns"] = [()] * len(frame)
    paired = ratios.paired_ratio(frame, "arm", "docker", "userland")
    assert paired["ratio"].tolist() == pytest.approx([1.1])
    assert paired["blocks"].tolist() == [2]
    whole = cells({"docker": [1.3], "userland": [1.0], "host": [1.0]}).assign(company="all")
    whole = whole.assign(block=7, turns=[()] * 3, group=1)
    both = ratios.paired_ratio(pd.concat([frame, whole]), "arm", "docker", "userland")
    assert (both["blocks"][0], both["most"][0]) == (3, pytest.approx(1.3))


def test_the_speed_up_of_a_kind_is_paired_within_each_launch() -> None:
    paired = ratios.paired_ratio(
        cells({"regular": [2.0, 4.0], "hbw": [1.0, 1.0]}, "kind"), "kind", "regular", "hbw"
    )
    assert paired["ratio"][0] == pytest.approx(np.sqrt(2.0 * 4.0))
    assert paired["arm"][0] == "host"


def test_bindings_which_never_share_a_block_are_paired_by_replicate() -> None:
    frame = cells({"packed": [1.0, 2.0], "spread": [2.0, 4.0]}, "binding")
    frame.loc[frame["binding"] == "spread", "block"] += 10
    paired = ratios.paired_ratio(frame, "binding", "spread", "packed")
    assert paired["ratio"][0] == pytest.approx(2.0)
    assert paired["blocks"][0] == 2


def test_an_arm_that_was_not_measured_gives_no_ratio() -> None:
    paired = over_host(cells({"host": [1.0]}))
    assert paired.empty
    assert {"ratio", "low", "high", "blocks", "p", "p_holm"} <= set(paired)


def test_p99_is_paired_as_the_launches_have_it() -> None:
    frame = cells({"host": [2.0] * 6, "docker": [3.0] * 6}).assign(
        company="a b", turns=[(9.0,)] * 12
    )
    paired = over_host(frame, value="p99_s")
    assert paired["ratio"].tolist() == pytest.approx([1.5])


def test_a_groups_ratio_is_over_the_cells_that_every_block_has() -> None:
    whole = cells({"host": [1.0] * 6, "docker": [1.1] * 6})
    torn = cells({"host": [1.0] * 6, "docker": [9.0] * 5}).assign(bytes=2048)
    paired = ratios.paired_ratio(pd.concat([whole, torn]), "arm", "docker", "host")
    grouped = ratios.group_ratio(paired, ["operation", "transport"])
    assert grouped["ratio"].tolist() == pytest.approx([1.1])
    assert grouped["cells"].tolist() == [1]
    assert grouped["blocks"].tolist() == [6]
    none = ratios.group_ratio(ratios.paired_ratio(whole, "arm", "podman", "host"), ["operation"])
    assert none.empty
    assert set(none) == {"operation", *ratios.RATIO, "cells"}


def test_transports_of_one_contest_are_compared_turn_by_turn() -> None:
    """The machine slows down by ten between two turns; medians over the launch would say 5.5."""
    frame = cells({"direct": [1.0] * 6, "mpi": [1.0] * 6}, "transport").assign(group=1, contest="3")
    frame["turns"] = [
        (1.0, 1.0, 10.0) if name == "direct" else (2.0, 20.0, 20.0) for name in frame["transport"]
    ]
    paired = ratios.paired_ratio(frame, "transport", "mpi", "direct")
    assert paired["ratio"].tolist() == [2.0]
    frame["contest"] = frame["transport"]
    assert ratios.paired_ratio(frame, "transport", "mpi", "direct")["ratio"].tolist() == [1.0]


def test_pooled_launches_of_a_block_are_one_replicate() -> None:
    frames = [
        cells({"direct": [1.0] * 2, "again": [ratio] * 2}, "transport").assign(
            mpi=mpi, arm=mpi, group=1, contest=1
        )
        for mpi, ratio in (("mpich", 1.1), ("impi", 0.9))
    ]
    frame = pd.concat(frames)
    frame["turns"] = [()] * len(frame)
    (row,) = ratios.paired_ratio(frame, "transport", "again", "direct", pooled=True).itertuples()
    assert row.blocks == 2 and row.ratio == pytest.approx(1.0, abs=0.01)


def test_joint_intervals_hold_those_of_cells_and_exchange_the_nth_blocks_of_all_mpis() -> None:
    rng = np.random.default_rng(3)
    frame = pd.concat(
        cells({"host": [*host], "docker": [*docker]}).assign(mpi=mpi, bytes=2**n)
        for n in range(12)
        for mpi in ("mpich", "impi")
        for host, docker in [np.exp(rng.normal(scale=0.01, size=(2, 8)))]
    )
    joint = ratios.jointly(over_host(frame))
    assert "of_block" not in joint
    assert (joint["joint_low"] <= joint["low"]).all()
    assert (joint["joint_high"] >= joint["high"]).all()
    assert (joint["joint_high"] > joint["high"]).any()
    later = frame.assign(block=frame["block"] + 100 * (frame["mpi"] == "impi"))
    again = ratios.jointly(over_host(later))
    assert again["joint_low"].tolist() == joint["joint_low"].tolist()
