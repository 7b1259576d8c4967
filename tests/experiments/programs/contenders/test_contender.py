"""Every contender leaves the same right bytes in the same buffers, of every operation it has."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.model.environment import MPIS

pytestmark = pytest.mark.ranks

PROGRAM = Path(__file__).parent / "ranks" / "same_bytes.py"


@pytest.mark.parametrize("flavour", MPIS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_every_contender_of_every_mpi_is_right(
    mpirun: Callable[..., Any], flavour: str, ranks: int
) -> None:
    printed = mpirun(PROGRAM, ranks, flavour, mpi=flavour).output
    for line in ("direct: 9", "direct persistent: 9", "direct nonblocking: 9"):
        assert line in printed
    for line in ("mpi: 9", "mpi nonblocking: 9", "pickle: 7"):
        assert line in printed
    assert f"mpi persistent: {6 if flavour == 'impi' else 9}" in printed


def test_without_torch_gloo_is_left_out_with_the_reason(mpirun: Callable[..., Any]) -> None:
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("torch is here")
    assert "gloo: torch cannot be imported" in mpirun(PROGRAM, 2, "openmpi").output


def test_with_torch_gloo_is_right_too(mpirun: Callable[..., Any]) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch here; install it: pip install torch")
    assert "gloo: 8" in mpirun(PROGRAM, 2, "openmpi").output
