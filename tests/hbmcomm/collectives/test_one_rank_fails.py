"""A failure of one rank alone is an error on all ranks, never a hang."""

from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "ranks" / "one_rank_fails.py"

pytestmark = pytest.mark.ranks


def test_all_ranks_get_the_error_of_one(kept: Callable[..., None], promise: str) -> None:
    kept(PROGRAM, 3, promise, timeout=60)
