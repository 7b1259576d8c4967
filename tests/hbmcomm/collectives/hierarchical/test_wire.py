"""When exchanges begin, and what a rank does while it waits for a call of MPI."""

from collections.abc import Iterator
from typing import Any

import pytest

from hbmcomm import PeerError
from hbmcomm.collectives.hierarchical.wire import Flight, Wire


class Slow:
    """A communicator, and the request of its only call: complete at one of its tests."""

    def __init__(self, tests: int, lost_after: int = 99) -> None:
        self.events: list[str] = []
        self._tests, self._lost_after = tests, lost_after

    def Dup(self) -> "Slow":
        return self

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
