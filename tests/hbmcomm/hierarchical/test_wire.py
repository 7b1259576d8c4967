"""What messages MPI sends, when exchanges begin, and what a rank does while it waits for MPI."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hbmcomm import PeerError
from hbmcomm.hierarchical import wire
from hbmcomm.hierarchical.wire import Flight, Packet, Wire
from hbmcomm.quantities import KIB, MIB


class Slow:
    """A communicator, and the request of its only call: complete at one of its tests."""

    def __init__(self, tests: int, lost_after: int = 99) -> None:
        self.events: list[str] = []
        self._tests, self._lost_after = tests, lost_after

    def Dup(self) -> "Slow":
        return self

    def Isend(self, buffer: list[Any], rank: int, tag: int) -> None:
        self.events.append(f"{buffer[1] // KIB} KiB to {rank}")

    def Test(self) -> bool:
        self.events.append("test")
        return self.events.count("test") == self._tests

    def refuse_lost(self) -> None:
        self.events.append("look")
        if self.events.count("test") == self._lost_after:
            raise PeerError("rank 1 died")


def wait_for(slow: Any) -> None:
    Wire(slow, lambda _: None, slow.refuse_lost).collective("Bcast", lambda comm: comm)


def test_a_rank_looks_for_losses_before_mpi_sends_in_the_start_or_a_test_of_a_call() -> None:
    slow = Slow(tests=3)
    wait_for(slow)
    assert slow.events == ["look", "test"] * 3


def test_a_call_of_mpi_is_tested_no_more_once_a_rank_is_lost() -> None:
    slow = Slow(tests=9, lost_after=2)
    with pytest.raises(PeerError, match="rank 1 died"):
        wait_for(slow)
    assert slow.events == ["look", "test", "look", "test", "look"]


@pytest.mark.parametrize("in_turn", [False, True])
def test_an_exchange_in_turn_begins_when_the_one_before_is_over(in_turn: bool) -> None:
    begun = []

    def exchange(name: str, requests: list[Any]) -> Iterator[list[Any]]:
        begun.append(name)
        yield requests

    message: list[Any] = ["not complete"]
    first = Flight(exchange("first", message), None)  # type: ignore[arg-type]
    second = Flight(exchange("second", message), first if in_turn else None)  # type: ignore[arg-type]
    assert begun == ["first"] if in_turn else ["first", "second"]
    assert not first.advance() and not second.advance()
    message.clear()
    assert first.advance() and first.is_over
    assert second.advance() and begun == ["first", "second"]


@pytest.mark.parametrize(
    ("kib", "parts"), [(0, []), (60, [60]), (120, [60, 60]), (160, [60, 60, 40]), (1024, [1024])]
)
def test_messages_that_are_not_long_go_in_parts_that_need_no_answer(
    kib: int, parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "UNASKED", 60 * KIB)
    slow: Any = Slow(tests=1)
    memory = np.empty(MIB, np.uint8)
    packet = Packet(1, memory.ctypes.data, kib * KIB)
    Wire(slow, lambda _: None, lambda: None).start([packet], [])
    assert slow.events == [f"{part} KiB to 1" for part in parts]
