"""The samples behind a ratio: as stored, paired by block, thinned without hiding an outlier."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analysis.campaign import Campaign
from experiments.analysis.reading import load
from plots.html import samples


@pytest.fixture(scope="module")
def campaign(arms_folder: Path) -> Campaign:
    """Two profiles, two layouts, two MPIs, two blocks of each."""
    return load(arms_folder)


@pytest.fixture(scope="module")
def page(campaign: Campaign) -> dict[str, Any]:
    """What the page holds of its samples."""
    return samples.samples(campaign)


def test_every_cell_of_the_container_table_has_its_pairs(
    page: dict[str, Any], campaign: Campaign
) -> None:
    assert set(page["cells"]) == {str(index) for index in campaign.containers.index}
    for index, blocks in campaign.containers["blocks"].items():
        assert len(page["cells"][str(index)]["pairs"]) == blocks == 2


def test_pairs_give_the_ratio_of_the_table(page: dict[str, Any], campaign: Campaign) -> None:
    for index, ratio in campaign.containers["ratio"].items():
        sides = [
            page["series"][arm][1] / page["series"][host][1]
            for _, host, arm in page["cells"][str(index)]["pairs"]
        ]
        assert np.median(sides) == pytest.approx(ratio, rel=0.02)


def test_a_pair_shares_its_block(page: dict[str, Any], campaign: Campaign) -> None:
    asked = [result.launch for result in campaign.launches]
    blocks = {(launch.block, launch.arm): launch.mpi for launch in asked}
    for cell in page["cells"].values():
        spelt = {"Open MPI": "openmpi", "MPICH": "mpich"}[cell["what"].split(", ")[3]]
        for block, _, _ in cell["pairs"]:
            assert blocks[block, "host"] == spelt


def test_all_samples_stand_where_there_is_room(page: dict[str, Any]) -> None:
    for measured, median, shown in page["series"]:
        assert len(shown) == measured == 30
        assert shown == sorted(shown)
        assert shown[0] <= median <= shown[-1]


def test_a_cell_is_told_in_words(page: dict[str, Any], campaign: Campaign) -> None:
    first = page["cells"]["0"]
    assert first["arm"] == "Docker, default, one container"
    assert first["what"] == "Allreduce, direct, 1 KiB, MPICH, 2 ranks, regular"
    assert first["verdict"] == campaign.containers.loc[0, "verdict"]


def test_thinning_keeps_both_ends_and_the_shape() -> None:
    times = np.random.default_rng(1).lognormal(-11, 0.2, 10001)
    times[17] = 1.0  # an outlier of a second
    shown = samples.thinned(times, 41)
    assert len(shown) == 41
    assert shown[0] == pytest.approx(times.min() * 1e6, rel=0.005)
    assert shown[-1] == 1e6
    assert shown[20] == pytest.approx(np.median(times) * 1e6, rel=0.005)
    assert samples.thinned(times[:3], 41) == sorted(samples.thinned(times[:3], 3))


def test_a_large_campaign_keeps_fewer_samples_of_each_launch(
    campaign: Campaign, page: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(samples.text({"series": page["series"]})) > 40_000
    monkeypatch.setattr(samples, "ROOM", 20_000)
    thin = samples.samples(campaign)
    assert samples.LEAST <= thin["kept"] < 30
    assert {measured for measured, _, _ in thin["series"]} == {30}
    assert {len(shown) for _, _, shown in thin["series"]} == {thin["kept"]}
    assert len(samples.text({"series": thin["series"]})) < 25_000


def test_no_text_can_end_the_script_that_holds_it() -> None:
    held = samples.text({"a": "</script><b>µ"})
    assert "<" not in held
    assert json.loads(held) == {"a": "</script><b>µ"}
