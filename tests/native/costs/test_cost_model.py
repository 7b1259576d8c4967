"""The model of docs/costs.md gives results that are easy to compute by hand."""

import pytest

from tests.native.costs.cost_model import Call, Machine, Place, expected_time
from tests.native.costs.rivals import algorithms

HERE, FAR = Place(0, 0, 0), Place(1, 1, 1)


def test_a_flag_takes_the_latency_of_its_distance() -> None:
    machine = Machine((10, 20, 30, 40), polls=4, flight=8)
    for other, expected in (((0, 0, 0), 10), ((0, 0, 1), 20), ((0, 1, 1), 30), ((1, 2, 2), 40)):
        call = Call([HERE, Place(*other)])
        call.store(1, "flag")
        call.read(0, 1, "flag")
        assert expected_time(call, machine) == expected


def test_a_chain_adds_up_and_flags_beside_it_overlap() -> None:
    machine = Machine((10, 0, 0, 0), polls=5, flight=1)
    call = Call([HERE] * 3)
    call.store(0, "first")
    call.read(1, 0, "first")
    call.store(1, "second")
    call.read(2, 1, "second")  # at 20; the other flag has been there since 0
    call.read(2, 0, "first")
    assert expected_time(call, machine) == 22


def test_readers_of_one_line_are_served_one_by_one() -> None:
    machine = Machine((10, 0, 0, 0), polls=1, flight=1, service=0.5)
    call = Call([HERE] * 5)
    call.store(0, "flag")
    for reader in range(1, 5):
        call.read(reader, 0, "flag")
    assert expected_time(call, machine) == 10 + 3 * 5


def test_data_takes_a_latency_and_then_flows_unless_a_link_is_slower() -> None:
    call = Call([HERE, FAR])
    call.data(0, 1, 6400)
    machine = Machine((1, 1, 1, 40), polls=1, flight=4)
    assert expected_time(call, machine) == 40 + 99 * 10
    slower = Machine((1, 1, 1, 40), polls=1, flight=4, package_link=2)
    assert expected_time(call, slower) == 3200


def test_a_deadlock_is_refused() -> None:
    call = Call([HERE] * 2)
    for rank in (0, 1):
        call.read(rank, 1 - rank, "flag")
        call.store(rank, "flag")
    with pytest.raises(ValueError, match="wait for words"):
        expected_time(call, Machine((1, 1, 1, 1), polls=1, flight=1))


def test_every_rank_gets_every_byte_of_a_bcast() -> None:
    places = [Place(r // 8, r // 4, r // 2) for r in range(16)]
    for name, make in algorithms(has_l3=True).items():
        call = make(places, "Bcast", 65536)
        for rank in range(1, 16):
            got = sum(e.value for e in call.events[rank] if e.kind == "data")
            assert got == 65536, (name, rank)


def test_an_allreduce_reduces_all_inputs() -> None:
    """Each byte of the result needs P - 1 bytes of other ranks: in a flat algorithm each rank reads
    them, in groups and trees the worker reads one of each other member."""
    places = [HERE] * 16
    expected = {
        "flat": 15 * 65536,
        "XHC": 15 * 65536 + 15 * 65536,  # and all others read the result
        "release_gather": 15 * 65536 + 15 * 65536,
    }
    for name, make in algorithms(has_l3=True).items():
        call = make(places, "Allreduce", 65536)
        read = sum(e.value for events in call.events for e in events if e.kind == "data")
        assert read == expected[name], name
