"""False and missed claims of whole campaigns with a known answer (simulated.py)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analysis import reading
from plots.contents import answers
from plots.text.headline import headline
from tests.campaigns import write_campaign
from tests.experiments.analysis.simulated import BLOCKS, LASTING, NOISES, shares

ALLOWED = 0.05


@pytest.mark.parametrize(
    ("noise", "blocks"),
    [("1 % shared by the cells of a launch", 6), ("twenty times as strong in some cells", 20)],
)
def test_a_null_campaign_of_144_cells_makes_no_false_claim(noise: str, blocks: int) -> None:
    """In at most 5 of 100: of 30 a share of 0.17 is three standard errors above that."""
    assert shares(NOISES[noise], blocks, 30)["false"] <= 0.17


@pytest.mark.rare
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("noise", NOISES)
def test_null_campaigns_make_a_false_claim_in_5_of_100_at_most(noise: str, blocks: int) -> None:
    assert shares(NOISES[noise], blocks, 400)["false"] <= ALLOWED + 3 * (0.05 * 0.95 / 400) ** 0.5


@pytest.mark.rare
@pytest.mark.parametrize("blocks", BLOCKS)
def test_effects_are_found_and_are_not_called_none(blocks: int) -> None:
    rates = {effect: shares(NOISES["normal"], blocks, 60, effect) for effect in (0.03, 0.2, 0.7)}
    assert all(row["equivalent"] <= ALLOWED for row in rates.values())
    assert all(row["false"] <= 0.14 for row in rates.values())
    assert rates[0.7]["missed"] <= 0.05 and rates[0.2]["missed"] <= 0.35


@pytest.mark.rare
def test_what_lasts_over_all_blocks_is_seen_by_no_statistics() -> None:
    """Which is why files are copied anew for every block."""
    (lasting,) = LASTING.values()
    assert shares(lasting, 20, 200)["false"] > ALLOWED


def sentences(folder: Path, seed: int, effect: float, blocks: int) -> str:
    """Headline and answers about containers, read back from the files of a campaign."""

    def times(cell: dict[str, Any], rng: np.random.Generator) -> float:
        slower = cell["environment"] == "docker" and cell["bytes"] == 2**16
        return float(1e-5 * (1 + effect * slower) * rng.lognormal(0, 0.01))

    flags: dict[str, Any] = {"environments": "host,userland,docker", "profiles": "tuned"}
    write_campaign(folder, slim=True, times=times, seed=seed, blocks=blocks, **flags)
    campaign = reading.load(folder)
    shown = [answer.sentence for answer in answers(campaign) if "container cost" in answer.question]
    opening = headline(campaign)
    return " ".join([*opening.sentences, *opening.conditions, *shown])


CLAIMS = ("are slower", "are faster", "times (")


def test_a_campaign_read_from_its_files_says_what_is_true(tmp_path: Path) -> None:
    null = sentences(tmp_path / "null", 1, 0.0, 6)
    assert "in every single cell" in null
    assert not any(claim in null for claim in CLAIMS)
    slower = sentences(tmp_path / "slower", 1, 0.7, 6)
    assert "are slower, most of all" in slower and "(64 KiB)" in slower
    assert "are faster" not in slower


@pytest.mark.rare
@pytest.mark.parametrize("blocks", [6, 13])
def test_sentences_of_whole_campaigns_are_true(blocks: int, tmp_path: Path) -> None:
    """Of 30 null campaigns, 6 false ones would be three standard errors too many."""
    texts = [sentences(tmp_path / str(seed), seed, 0.0, blocks) for seed in range(30)]
    assert sum(any(claim in text for claim in CLAIMS) for text in texts) < 6
    assert all("(64 KiB)" in sentences(tmp_path / f"s{n}", n, 0.7, blocks) for n in range(10))
