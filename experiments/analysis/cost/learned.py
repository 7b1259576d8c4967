"""A learned model beside: gradient boosting on logarithms. Needs scikit-learn, an extra."""

import importlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SEED = 1
MISSING = (
    "scikit-learn is not installed, so there is no learned model beside; add it: "
    ".venv/bin/pip install --constraint constraints.txt --group systems"
)


def predicted(frame: pd.DataFrame, fitted: pd.Series) -> pd.Series:
    """Seconds that gradient boosting predicts for every row from those that are fitted; NaN where
    scikit-learn is not installed.

    One model learns all operations of an MPI and transport: it has more times than a model of one.
    """
    found = pd.Series(np.nan, index=frame.index)
    try:
        ensemble: Any = importlib.import_module("sklearn.ensemble")
    except ImportError:
        return found
    for _, part in frame.groupby(["mpi", "transport"]):
        features, mine = _features(part), fitted[part.index].to_numpy()
        model = ensemble.GradientBoostingRegressor(random_state=SEED, n_estimators=300, max_depth=4)
        model.fit(features[mine], np.log(part["seconds"].to_numpy()[mine]))
        found[part.index] = np.exp(model.predict(features))
    return found


def _features(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Logarithms of size, ranks and their product, and a column per operation."""
    size, ranks = (np.log2(frame[name].to_numpy(dtype=float)) for name in ("bytes", "ranks"))
    operations = pd.get_dummies(frame["operation"], dtype=float)
    return np.column_stack([size, ranks, size + ranks, operations])
