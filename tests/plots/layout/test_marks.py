"""Marks that several figures share."""

import math

import pandas as pd
import pytest

from plots.layout.marks import (
    dodge,
    even_ticks,
    positive_ends,
    ratio_ends,
    ratio_span,
    series_handles,
    spread,
)
from plots.layout.style import ARMS


def test_labels_are_spread_evenly_and_keep_both_ends() -> None:
    assert spread([1, 2, 4, 8, 16], 3) == [1, 4, 16]
    assert spread([1, 2], 4) == [1, 2]
    assert spread([7], 3) == [7]
    assert spread(list(range(8)), 6) == [0, 2, 5, 7]


def test_series_are_set_apart_around_their_size() -> None:
    factors = [dodge(index, 3) for index in range(3)]
    assert factors[1] == 1
    assert math.prod(factors) == pytest.approx(1)
    assert 1 < factors[2] / factors[0] < 1.3
    assert dodge(0, 1) == 1


def test_a_ratio_axis_holds_every_interval_within_its_limits() -> None:
    frame = pd.DataFrame({"ratio": [1.0], "low": [0.5], "high": [1.2]})
    assert ratio_span(frame, least=1.1, most=10) > 2
    assert ratio_span(frame, least=1.1, most=1.5) == 1.5
    assert ratio_span(frame, least=3, most=4) == 3
    unknown = frame.assign(low=math.nan, high=math.nan)
    assert ratio_span(unknown, least=1.1, most=4) == 1.1


def test_every_ratio_axis_has_a_tick_at_one_and_on_both_sides() -> None:
    for span in (1.1, 1.2, 1.5, 2.0, 3.0, 4.0, 10.0):
        ticks = [tick for tick in even_ticks(span) if 1 / span <= tick <= span]
        assert ticks[0] < 1 < ticks[-1] and 1 in ticks, span


def test_ends_hold_what_an_axis_can_show() -> None:
    frame = pd.DataFrame({"low": [math.nan, 0.0, 2.0], "high": [3.0, math.inf, 8.0]})
    assert positive_ends(frame) == (2, 8)
    assert ratio_ends([1.0, math.nan]) == (0.8, 1.25)
    assert ratio_ends([0.23, 2.0]) == pytest.approx((0.2, 2.3))


def test_series_of_a_legend_have_looks_of_their_own() -> None:
    handles = series_handles(map(str, range(len(ARMS))))
    assert len({(handle.get_color(), handle.get_marker()) for handle in handles}) == len(ARMS)
