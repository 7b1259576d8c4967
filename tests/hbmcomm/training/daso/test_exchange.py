"""What an exchange merges, by the paper's formula."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.training.daso.exchange import Exchange
from hbmcomm.training.daso.parameters import Flat


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=5), st.integers(1, 5), st.integers(0, 9))
def test_the_sum_is_merged_as_in_the_paper(x: list[float], hosts: int, waited: int) -> None:
    own, total = np.array(x), np.arange(len(x), dtype=float)
    due = (2 * waited * own + total) / (2 * waited + hosts)
    result = Flat([own], np.empty(len(x)))
    Exchange(0, 0, Flat([own], total)).merge([own], result, waited, hosts)
    np.testing.assert_allclose(result.whole, due, rtol=1e-14, atol=1e-14)
