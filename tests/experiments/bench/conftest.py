"""Launch medians of a bench, by hand."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import pytest

from experiments.bench.store import COLUMNS

Medians = Callable[..., pd.DataFrame]


def make(
    times: Mapping[tuple[str, str], Sequence[float]],
    *,
    operation: str = "allreduce",
    size: int = 1024,
    form: str = "plain",
    ranks: int = 2,
    setting: str = "default",
) -> pd.DataFrame:
    """One cell: {(flavour, contender): seconds in each block}; the bound is half a second."""
    rows = [
        {"block": block, "flavour": flavour, "ranks": ranks, "operation": operation, "bytes": size}
        | {"contender": contender, "form": form, "median_s": seconds, "low_s": seconds}
        | {"high_s": seconds, "min_s": seconds, "p95_s": seconds, "n": 100, "group": 1}
        | {"bound_s": 0.5, "setting": setting}
        for (flavour, contender), every in times.items()
        for block, seconds in enumerate(every)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


@pytest.fixture
def medians() -> Medians:
    """medians({(flavour, contender): seconds in each block}, operation=..., size=..., form=...,
    ranks=..., setting=...)
    """
    return make
