"""Contenders of a launch work over the buffers that are theirs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize("buffers", ["arena", "numpy"])
def test_another_build_has_arrays_of_its_own_arena(
    mpirun: Callable[..., Any], tmp_path: Path, buffers: str
) -> None:
    program = Path(__file__).parent / "ranks" / "own_arena.py"
    assert mpirun(program, 2, str(tmp_path), buffers).output.count("ok") == 2
