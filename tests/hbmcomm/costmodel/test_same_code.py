"""Data-parallel training takes no other code for one rank than for many (Besch and Pohl, 1995)."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.starting import Start

PROGRAM = Path(__file__).parent / "ranks" / "same_code.py"


@pytest.mark.ranks
def test_the_same_code_trains_the_same_weights_on_one_rank_and_on_three(mpirun: Start) -> None:
    found = [_weights(mpirun(PROGRAM, ranks).output) for ranks in (1, 3)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found[0], np.arange(6), atol=0.1)


def _weights(output: str) -> list[float]:
    words = re.search(r"weights (.*) end", output)
    assert words, output
    return [float(each) for each in words[1].split()]
