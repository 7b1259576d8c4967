"""The model of docs/costs.md gives what one works out by hand."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])
    return runpy.run_path(str(HERE / "cost_model.py"))


@pytest.fixture
def rivals(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])
    return runpy.run_path(str(HERE / "rivals.py"))


def test_a_flag_takes_the_latency_of_its_distance(model: dict[str, Any]) -> None:
    machine = model["Machine"]((10, 20, 30, 40), polls=4, flight=8)
    here = model["Place"](0, 0, 0)
    for other, expected in (((0, 0, 0), 10), ((0, 0, 1), 20), ((0, 1, 1), 30), ((1, 2, 2), 40)):
        call = model["Call"]([here, model["Place"](*other)])
        call.store(1, "flag")
        call.read(0, 1, "flag")
        assert model["expected_time"](call, machine) == expected


def test_a_chain_adds_up_and_flags_beside_it_overlap(model: dict[str, Any]) -> None:
    machine = model["Machine"]((10, 0, 0, 0), polls=5, flight=1)
    call = model["Call"]([model["Place"](0, 0, 0)] * 3)
    call.store(0, "first")
    call.read(1, 0, "first")
    call.store(1, "second")
    call.read(2, 1, "second")  # at 20; the other flag has been there since 0
    call.read(2, 0, "first")
    assert model["expected_time"](call, machine) == 22


def test_readers_of_one_line_are_served_one_after_the_other(model: dict[str, Any]) -> None:
    machine = model["Machine"]((10, 0, 0, 0), polls=1, flight=1, service=0.5)
    call = model["Call"]([model["Place"](0, 0, 0)] * 5)
    call.store(0, "flag")
    for reader in range(1, 5):
        call.read(reader, 0, "flag")
    assert model["expected_time"](call, machine) == 10 + 3 * 5


def test_data_takes_a_latency_and_then_flows_unless_a_link_is_slower(
    model: dict[str, Any],
) -> None:
    places = [model["Place"](0, 0, 0), model["Place"](1, 1, 1)]
    call = model["Call"](places)
    call.data(0, 1, 6400)
    machine = model["Machine"]((1, 1, 1, 40), polls=1, flight=4)
    assert model["expected_time"](call, machine) == 40 + 99 * 10
    slower = model["Machine"]((1, 1, 1, 40), polls=1, flight=4, package_link=2)
    assert model["expected_time"](call, slower) == 3200


def test_a_record_in_which_nobody_could_go_on_is_refused(model: dict[str, Any]) -> None:
    call = model["Call"]([model["Place"](0, 0, 0)] * 2)
    for rank in (0, 1):
        call.read(rank, 1 - rank, "flag")
        call.store(rank, "flag")
    with pytest.raises(ValueError, match="wait for words"):
        model["expected_time"](call, model["Machine"]((1, 1, 1, 1), polls=1, flight=1))


def test_every_rank_gets_every_byte_that_a_bcast_owes_it(rivals: dict[str, Any]) -> None:
    places = [rivals["Place"](r // 8, r // 4, r // 2) for r in range(16)]
    for name, make in rivals["algorithms"](has_l3=True).items():
        call = make(places, "Bcast", 65536)
        for rank in range(1, 16):
            got = sum(e.value for e in call.events[rank] if e.kind == "data")
            assert got == 65536, (name, rank)


def test_the_inputs_of_an_allreduce_are_all_folded(rivals: dict[str, Any]) -> None:
    """Each byte of the result is folded of all inputs: P - 1 reads of another rank's byte in a
    flat algorithm, one for each member beside the worker's own in groups and trees."""
    places = [rivals["Place"](0, 0, 0)] * 16
    expected = {
        "flat": 15 * 65536,
        "XHC": 15 * 65536 + 15 * 65536,  # and the result goes to all others
        "release_gather": 15 * 65536 + 15 * 65536,
    }
    for name, make in rivals["algorithms"](has_l3=True).items():
        call = make(places, "Allreduce", 65536)
        read = sum(e.value for events in call.events for e in events if e.kind == "data")
        assert read == expected[name], name
