"""What a rank does while it waits for a call of MPI, on a communicator made by hand."""

from typing import Any

import pytest

from hbmcomm import PeerError
from hbmcomm.collectives.hierarchical.wire import Wire


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
