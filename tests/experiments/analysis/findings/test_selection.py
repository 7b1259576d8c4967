"""Rows at usual levels, and names in the order that readers see."""

import pandas as pd

from experiments.analysis.findings import selection


def test_the_usual_level_of_a_factor_is_kept_or_its_first() -> None:
    frame = pd.DataFrame({"binding": ["packed", "spread"], "locality": ["remote", "remote"]})
    assert selection.usual(frame)["binding"].tolist() == ["packed"]
    assert selection.usual(frame, "locality")["locality"].tolist() == ["remote", "remote"]


def test_names_are_ordered_known_ones_first() -> None:
    assert selection.in_order(["b", "z", "a", "b"], ["z"]) == ["z", "a", "b"]
