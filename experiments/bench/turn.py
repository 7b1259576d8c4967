"""Records in a file which contender of a launch has its turn: the place where a launch failed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

FILE = "turn"
"""In the launch's folder, beside its progress."""


class Turn(NamedTuple):
    """A contender and the cell that it measures."""

    operation: str
    bytes: int
    contender: str
    form: str


class Turns:
    """Writes each turn down before any rank begins it."""

    def __init__(self, path: Path | None, barrier: Callable[[], object]) -> None:
        """`path` on the one rank that writes; `barrier` is of no contender."""
        self._path, self._barrier = path, barrier

    def begin(self, turn: Turn) -> None:
        """A collective, outside all timed intervals."""
        if self._path is not None:
            self._path.write_text(json.dumps(turn), encoding="utf-8")
        self._barrier()

    def end(self) -> None:
        """No contender has a turn any more."""
        if self._path is not None:
            self._path.write_text("", encoding="utf-8")


def parse(text: str) -> Turn | None:
    """The turn that a file's text holds; None where it holds none, as before the first turn."""
    try:
        return Turn(*json.loads(text))
    except (ValueError, TypeError):
        return None
