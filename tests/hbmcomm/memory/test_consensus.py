"""An error of one rank becomes one of all, by a name that another rank sends."""

from collections.abc import Callable
from typing import NoReturn

import pytest

from hbmcomm import HbmcommError, OutOfMemory
from hbmcomm.costmodel.machine import CostModelError
from hbmcomm.memory import consensus
from hbmcomm.memory.consensus import Problem


class OfAProgram(HbmcommError):
    """An error that a user's program defines."""


class WrongValue(ValueError):
    """As of numpy or torch."""


def failing(error: Exception) -> Callable[[], NoReturn]:
    def act() -> NoReturn:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OutOfMemory("none left"), OutOfMemory),
        (CostModelError("none left"), CostModelError),
        (OfAProgram("none left"), HbmcommError),
        (WrongValue("none left"), ValueError),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_rank_raises_the_error_of_the_one_that_failed(
    error: Exception, kind: type[Exception]
) -> None:
    _, problem = consensus.run_locally(failing(error), (HbmcommError, ValueError))
    with pytest.raises(kind, match="rank 1: none left") as raised:
        consensus.first_problem([None, problem])
    assert raised.type is kind


def test_a_rank_names_no_error_but_this_packages() -> None:
    for name in ("SystemExit", "KeyboardInterrupt", "OfAProgram", "", "os.system"):
        with pytest.raises(HbmcommError, match="rank 0: a text") as raised:
            consensus.first_problem([Problem("a text", name)])
        assert raised.type is HbmcommError, name
