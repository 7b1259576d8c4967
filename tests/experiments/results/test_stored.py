"""A stored experiment is read as it was asked, whatever names this machine knows."""

from collections.abc import Mapping
from typing import Any

import pytest

from experiments.catalogue import spec
from experiments.results import stored
from experiments.results.store import ResultsError

ASKED = spec.load("quick").to_dict()


@pytest.mark.parametrize("name", spec.names())
def test_every_experiment_of_the_catalogue_survives_its_stored_form(name: str) -> None:
    asked = spec.load(name)
    assert stored.experiment(asked.to_dict(), "campaign.json") == asked


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("launches", "environments", ["vm:a-machine-of-ones-own"]),
        ("launches", "mpis", ["mvapich"]),
        ("launches", "profiles", ["hardened"]),
        ("factors", "kinds", ["hbm3"]),
        ("factors", "dtype", "bfloat16"),
        ("measurement", "cadence", "bursts"),
    ],
)
def test_a_name_that_this_machine_does_not_know_is_taken(table: str, key: str, value: Any) -> None:
    found = stored.experiment(ASKED | {table: ASKED[table] | {key: value}}, "campaign.json")
    wanted = tuple(value) if isinstance(value, list) else value
    assert found.to_dict()[table][key] == wanted


def test_a_key_that_is_absent_has_its_default_and_an_unknown_one_is_left_out() -> None:
    launches = {key: value for key, value in ASKED["launches"].items() if key != "external"}
    found = stored.experiment(ASKED | {"launches": launches | {"weather": "fair"}}, "campaign.json")
    assert found == spec.load("quick")


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([], "experiment holds []"),
        ({key: value for key, value in ASKED.items() if key != "title"}, "experiment.title"),
        (ASKED | {"launches": 3}, "experiment.launches holds 3"),
        (ASKED | {"launches": {"ranks": ["2"]}}, "experiment.launches.ranks holds '2'"),
        (ASKED | {"factors": {"largest": {"mpi": "1"}}}, "experiment.factors.largest.mpi"),
        (ASKED | {"measurement": {"time_cap": True}}, "experiment.measurement.time_cap"),
    ],
)
def test_a_damaged_experiment_names_file_and_key(values: Mapping[str, Any], place: str) -> None:
    with pytest.raises(ResultsError, match="the file is damaged") as refused:
        stored.experiment(values, "x/campaign.json")
    assert f"x/campaign.json: {place}" in str(refused.value)
