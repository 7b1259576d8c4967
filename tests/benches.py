"""Benches: what flags ask for, and launch medians by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.analysis.campaign import Campaign
from experiments.analysis.reading import COLUMNS
from experiments.analysis.statistics import FACTORS
from experiments.catalogue import spec
from experiments.model.experiment import Experiment
from experiments.results.formats import HEADER


def ask(ranks: int | str, *, against: str = "", **flags: Any) -> Experiment:
    """The catalogue's bench as flags change it, by the names that spec.restrict() has for them."""
    asked = spec.load("bench")
    return spec.restrict(asked, ranks=str(ranks), other_build=bool(against), **flags)


def medians(
    times: Mapping[tuple[str, str], float | Sequence[float] | NDArray[np.float64]],
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


def stored(cells: pd.DataFrame, asked: Experiment, *notes: str, **header: Any) -> Campaign:
    """A bench that was read."""
    frame = cells.head(0)
    return Campaign(
        *(Path(), asked.name, asked, dict(HEADER) | header, [], cells, frame, frame, [*notes])
    )
