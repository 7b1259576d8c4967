"""8 ranks over the 4 quadrants of a Knights Landing: right results, and how often bytes cross."""

from pathlib import Path
from typing import Any

import pytest

from experiments.model.checkout import ROOT

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.rare, pytest.mark.timeout(1800)]

PROGRAM = Path(__file__).parent / "ranks" / "quadrants.py"
COUNTS = ROOT / "tests/hbmcomm/ranks/crossings.py"


def quadrants(there: Any) -> Any:
    """All collectives over the quadrants."""
    return there.ranks("quadrants", 8, [f"FOLDER/{PROGRAM.name}"], PROGRAM, COUNTS)


@pytest.mark.visit("knl-snc4-flat", quadrants)
def test_collectives_are_right_and_bytes_cross_no_oftener_than_reported(brought: Any) -> None:
    assert brought.code == 0, brought.output
    assert brought.output.split() == ["right"] * 8
