"""Rows at usual levels, names in the order that readers see, and values as JSON holds them."""

import math

import numpy as np
import pandas as pd

from experiments.analysis import selection


def test_the_usual_level_of_a_factor_is_kept_or_its_first() -> None:
    frame = pd.DataFrame({"binding": ["packed", "spread"], "locality": ["remote", "remote"]})
    assert selection.usual(frame)["binding"].tolist() == ["packed"]
    assert selection.usual(frame, "locality")["locality"].tolist() == ["remote", "remote"]


def test_names_are_ordered_known_ones_first() -> None:
    assert selection.in_order(["b", "z", "a", "b"], ["z"]) == ["z", "a", "b"]


def test_rows_are_sorted_by_the_places_of_names() -> None:
    assert selection.places(pd.Series(["b", "z", "a", "b"]), ["z"]).tolist() == [2, 0, 1, 2]


def test_json_has_pythons_own_values_and_null_for_no_number() -> None:
    frame = pd.DataFrame({"ranks": [2], "ratio": [math.nan], "arm": ["host"]})
    assert selection.json_records(frame) == [{"ranks": 2, "ratio": None, "arm": "host"}]
    assert type(selection.json_value(np.int64(2))) is int
    assert selection.json_value(np.float64(math.inf)) is None
