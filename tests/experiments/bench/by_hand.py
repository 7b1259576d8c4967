"""Launch medians of a bench, by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from experiments.analysis.reading import COLUMNS, Campaign
from experiments.analysis.statistics import FACTORS
from experiments.model.experiment import Experiment


def medians(
    times: Mapping[tuple[str, str], float | Sequence[float]],
    *,
    operation: str = "allreduce",
    size: int = 1024,
    form: str = "plain",
    ranks: int = 2,
    setting: str = "default",
) -> pd.DataFrame:
    """One cell: {(MPI, transport): seconds in each block}; the bound is half a second.

    One number is that of six blocks.
    """
    rows = [
        dict.fromkeys(FACTORS, "")
        | {"block": block, "arm": f"{mpi}-{setting}", "mpi": mpi, "setting": setting}
        | {"ranks": ranks, "operation": operation, "bytes": size, "emulated": False}
        | {"transport": transport, "form": form, "median_s": seconds, "bound_s": 0.5}
        | {"n": 100, "group": 1, "turns": (seconds,), "company": "", "contest": 1}
        for (mpi, transport), given in times.items()
        for block, seconds in enumerate([given] * 6 if isinstance(given, float) else given)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def stored(cells: pd.DataFrame, asked: Experiment, *notes: str, **header: str) -> Campaign:
    """A bench that was read."""
    frame = cells.head(0)
    return Campaign(*(Path(), asked.name, asked, header, [], cells, frame, frame, [*notes]))
