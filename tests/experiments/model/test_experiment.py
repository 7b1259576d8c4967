"""A stored experiment is read as it was asked, whatever names this machine knows."""

import json

import pytest

from experiments.catalogue import spec
from experiments.model.checkout import ROOT
from experiments.model.errors import SpecError
from experiments.model.experiment import Experiment, schema

ASKED = spec.load("quick").to_dict()


def stored(values: object) -> Experiment:
    return Experiment.from_dict(values, "x/campaign.json: experiment", stored=True)


def test_every_experiment_of_the_catalogue_survives_its_stored_form() -> None:
    assert len(spec.names()) > 10
    for name in spec.names():
        asked = spec.load(name)
        assert stored(json.loads(json.dumps(asked.to_dict()))) == asked, name


def test_a_name_that_this_machine_does_not_know_is_taken() -> None:
    for table, key, value in (
        ("launches", "environments", ["vm:a-machine-of-ones-own"]),
        ("launches", "mpis", ["mvapich"]),
        ("launches", "profiles", ["hardened"]),
        ("factors", "kinds", ["hbm3"]),
        ("factors", "dtype", "bfloat16"),
        ("measurement", "cadence", "bursts"),
    ):
        experiment = stored(ASKED | {table: ASKED[table] | {key: value}})
        wanted = tuple(value) if isinstance(value, list) else value
        assert experiment.to_dict()[table][key] == wanted


def test_a_key_that_is_absent_has_its_default_and_an_unknown_one_is_left_out() -> None:
    launches = {key: value for key, value in ASKED["launches"].items() if key != "external"}
    experiment = stored(ASKED | {"launches": launches | {"weather": "fair"}})
    assert experiment == spec.load("quick")


def test_a_damaged_experiment_names_file_and_key() -> None:
    for values, key in (
        ([], ""),
        ({key: value for key, value in ASKED.items() if key != "title"}, ".title"),
        (ASKED | {"launches": 3}, ".launches"),
        (ASKED | {"launches": {"ranks": ["2"]}}, ".launches.ranks"),
        (ASKED | {"launches": {"environments": ["hosts:999"]}}, ".launches.environments"),
        (ASKED | {"factors": {"largest": {"mpi": "1"}}}, ".factors.largest.mpi"),
        (ASKED | {"measurement": {"time_cap": True}}, ".measurement.time_cap"),
    ):
        with pytest.raises(SpecError, match=rf"^x/campaign\.json: experiment{key} cannot be so: "):
            stored(values)


def test_the_schema_of_a_campaign_has_what_the_model_says_of_an_experiment() -> None:
    path = ROOT / "docs" / "schemas" / "campaign.schema.json"
    shown = json.loads(path.read_text(encoding="utf-8"))["properties"]["experiment"]
    assert json.dumps(shown) == json.dumps(schema()), f"{path} is out of date: ./inv docs"
