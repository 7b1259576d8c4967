"""An end over MPI's one-sided calls, of which no call waits for a rank that is gone."""

from typing import Any
from unittest import mock

import numpy as np
import pytest

from hbmcomm import PeerError
from hbmcomm.training.regions.ends import WindowEnd

FLAG = 8


def end_of(memory: Any, look: Any, window: Any = None, gone: Any = None) -> WindowEnd:
    return WindowEnd(window or mock.Mock(), 1, memory, lambda: 0, look, gone or mock.Mock())


@pytest.mark.parametrize("raised", [True, False])
def test_a_flag_that_was_raised_before_its_rank_left_is_not_lost(raised: bool) -> None:
    memory = np.zeros(64, np.uint8)

    def look(_seconds: float) -> None:
        memory[FLAG] = raised
        raise PeerError("rank 1 has left")

    end = end_of(memory, look)
    if raised:
        end.wait(FLAG, 1)
    else:
        with pytest.raises(PeerError, match="has left"):
            end.wait(FLAG, 1)


def test_nothing_is_put_into_the_memory_of_a_rank_that_is_gone() -> None:
    window, gone = mock.Mock(), mock.Mock(side_effect=PeerError("rank 1 died"))
    end = end_of(np.zeros(64, np.uint8), mock.Mock(), window, gone)
    with pytest.raises(PeerError, match="died"):
        end.post((slice(0, 8),), FLAG, 1)
    assert not window.method_calls
