"""What a campaign of workloads may ask for, and what takes turns in it."""

from typing import Any

import pytest

from experiments.model.contender_names import NO_TRANSPORT
from experiments.model.errors import SpecError
from experiments.model.experiment import Experiment
from experiments.model.lower_bound import COPY
from experiments.schedule import footprint
from experiments.schedule.blocks import schedule

LEAST: dict[str, Any] = {
    "name": "x",
    "title": "t",
    "question": "q",
    "factors": {
        "operations": ["ddp_step"],
        "transports": ["gloo", "torch"],
        "kinds": ["regular"],
        "sizes": "1MiB:4MiB:2",
    },
}


def asked(table: str, key: str, value: object) -> dict[str, Any]:
    return LEAST | {table: LEAST.get(table, {}) | {key: value}}


def test_what_a_step_cannot_be_measured_with_is_refused() -> None:
    for table, key, value, message in (
        ("factors", "operations", ["ddp_step", "bcast"], "operations bcast cannot be measured"),
        ("factors", "transports", ["gloo", "mpi"], "ask for torch, gloo"),
        ("factors", "kinds", ["regular", "hbw"], "kinds hbw cannot be measured"),
        ("factors", "buffers", ["private"], "ask for arena"),
        ("factors", "dtype", "float64", "dtype float64"),
        ("factors", "sizes", "4KiB,1MiB", "multiples of 1048576 bytes, which ddp_step moves"),
        ("launches", "external", ["threads"], "ask for none"),
        ("measurement", "cache", "rotating", "cache rotating"),
    ):
        with pytest.raises(SpecError, match=message):
            Experiment.from_dict(asked(table, key, value), "mine.toml")


def test_the_computation_alone_takes_turns_with_each_step() -> None:
    launch = schedule(Experiment.from_dict(LEAST, "mine.toml"), 1)[0].launches[0]
    assert len(launch.contests) == 3
    for contest in launch.contests:
        assert contest[0].transport == NO_TRANSPORT
        assert {cell.transport for cell in contest[1:]} == {"gloo", "torch"}
        assert {cell.operation for cell in contest} == {"ddp_step"}
    assert COPY not in {cell.operation for cell in launch.plan}


def test_the_networks_of_a_training_step_count_as_memory_that_it_needs() -> None:
    launch = schedule(Experiment.from_dict(LEAST, "mine.toml"), 1)[0].launches[0]
    largest = 4 * 2**20
    assert footprint.own_bytes(launch, 0, 0) == largest + 3 * 5 * largest
