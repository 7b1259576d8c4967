"""The reference parser of OpenMetrics reads back what a campaign's tables hold, and no more.

node_exporter's textfile collector reads the older text format of Prometheus, so its parser must
read the same from the same text.
"""

import math
import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser
from prometheus_client.parser import text_string_to_metric_families as as_node_exporter

from experiments.analysis.campaign import Campaign
from experiments.analysis.openmetrics import openmetrics
from experiments.analysis.statistics import FACTORS
from experiments.model.checkout import ROOT
from tests.campaigns import find

CAMPAIGN = {
    "arms": ("host", "host-again", "userland", "docker-tuned-one"),
    "kinds": ("regular",),
    "sizes": (1024, 16384),
}


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    """Six blocks of four arms: ratios over host and userland, with intervals and noise floors."""
    return find(**CAMPAIGN)


@pytest.fixture(scope="module")
def text(campaign: Campaign) -> str:
    return "".join(openmetrics(campaign))


@pytest.fixture(scope="module")
def read(text: str) -> dict[str, Metric]:
    return families(text)


def families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def values(family: Metric) -> dict[frozenset[Any], float]:
    """{labels: value} of its samples, none of which comes twice."""
    read = {frozenset(sample.labels.items()): sample.value for sample in family.samples}
    assert len(read) == len(family.samples)
    return read


def of_column(frame: pd.DataFrame, column: str, **more: str) -> dict[frozenset[Any], float]:
    """{labels: value} of a table's rows; an empty level is no label."""
    names = ["arm", *FACTORS, "emulated_machine"]
    return {
        frozenset(
            (name, str(level))
            for name, level in ({"campaign": "quick"} | more | row[names].to_dict()).items()
            if level != ""
        ): row[column]
        for _, row in frame.iterrows()
    }


def test_every_median_reads_back_with_its_interval(
    campaign: Campaign, read: dict[str, Metric]
) -> None:
    assert len(campaign.times) == 3 * 9 * 2
    for name, column in {
        "median_seconds": "median_s",
        "median_low_seconds": "low_s",
        "median_high_seconds": "high_s",
        "p99_seconds": "p99_s",
        "launches": "launches",
    }.items():
        assert values(read[f"hbmcomm_{name}"]) == of_column(campaign.times, column)


def test_every_ratio_reads_back_with_its_intervals_and_blocks(
    campaign: Campaign, read: dict[str, Metric]
) -> None:
    twins = campaign.twins.assign(arm="host-again", environment="host", profile="", layout="")
    for name, column in {
        "time_ratio": "ratio",
        "time_low_ratio": "low",
        "time_high_ratio": "high",
        "time_joint_low_ratio": "joint_low",
        "time_joint_high_ratio": "joint_high",
        "noise_floor_ratio": "floor",
        "paired_blocks": "blocks",
    }.items():
        rows = (
            of_column(campaign.containers, column, over="host")
            | of_column(twins, column, over="host")
            | of_column(campaign.isolation, column, over="userland")
        )
        assert len(rows) == (2 + 1 + 1) * 9 * 2
        present = {labels: value for labels, value in rows.items() if not math.isnan(value)}
        assert values(read[f"hbmcomm_{name}"]) == present


def test_every_family_is_a_gauge_named_by_its_unit_without_timestamps(
    read: dict[str, Metric],
) -> None:
    assert len(read) == 12
    for name, family in read.items():
        assert family.type == "gauge"
        assert family.documentation.endswith(".")
        assert family.unit == {"seconds": "seconds", "ratio": "ratio"}.get(name.split("_")[-1], "")
        assert all(sample.timestamp is None for sample in family.samples)


def test_the_page_names_every_family_and_no_other(read: dict[str, Metric]) -> None:
    page = (ROOT / "docs" / "results-format.md").read_text(encoding="utf-8")
    table = [line for line in page.splitlines() if line.startswith("| `hbmcomm_")]
    named = re.findall(r"`(hbmcomm_\w+)`", "\n".join(table))
    assert sorted(named) == sorted(read)


def test_node_exporter_reads_the_same(text: str, read: dict[str, Metric]) -> None:
    own = {family.name: values(family) for family in as_node_exporter(text)}
    assert own == {name: values(family) for name, family in read.items()}


def test_names_with_quotes_and_line_ends_read_back_as_they_are(campaign: Campaign) -> None:
    name = 'the "quick" one\\n\nof site ü'
    text = "".join(openmetrics(replace(campaign, name=name)))
    for family in families(text).values():
        assert {sample.labels["campaign"] for sample in family.samples} == {name}


def test_what_is_unknown_has_no_sample() -> None:
    short = find(**CAMPAIGN | {"arms": ("host", "docker-tuned-one")}, blocks=2)
    read = families("".join(openmetrics(short)))
    assert {family.name for family in read.values() if not family.samples} == {
        "hbmcomm_median_low_seconds",
        "hbmcomm_median_high_seconds",
        *(f"hbmcomm_time_{end}_ratio" for end in ("low", "high", "joint_low", "joint_high")),
        "hbmcomm_noise_floor_ratio",
    }
    assert set(values(read["hbmcomm_paired_blocks"]).values()) == {2.0}


def test_a_campaign_of_the_host_alone_has_no_ratios() -> None:
    alone = find(**CAMPAIGN | {"arms": ("host",)})
    read = families("".join(openmetrics(alone)))
    assert set(read) == {
        *(f"hbmcomm_{name}_seconds" for name in ("median", "median_low", "median_high", "p99")),
        "hbmcomm_launches",
    }


def test_samples_of_an_emulated_machine_say_so() -> None:
    emulated = find(**CAMPAIGN, machine="knl-snc4-flat (tcg)")
    for family in families("".join(openmetrics(emulated))).values():
        machines = {sample.labels["emulated_machine"] for sample in family.samples}
        assert machines == {"knl-snc4-flat (tcg)"}
