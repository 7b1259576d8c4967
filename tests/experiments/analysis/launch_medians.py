"""One cell of a campaign, and its launch medians as reading.load gives them."""

import numpy as np
import pandas as pd

from experiments.analysis.statistics import FACTORS

CELL = (
    dict.fromkeys(FACTORS, "")
    | {"environment": "host", "mpi": "openmpi", "ranks": 2, "binding": "packed"}
    | {"locality": "local", "operation": "bcast", "transport": "mpi", "form": "plain"}
    | {"kind": "regular", "emulated": False, "dtype": "float32", "bytes": 1024}
    | {"cadence": "isolated", "cache": "warm"}
)


def cells(times: dict[str, list[float]], column: str = "arm") -> pd.DataFrame:
    """Launch medians by the value of one column, one per block."""
    rows = [
        CELL
        | {"arm": "host", "block": block, "median_s": seconds, "bound_s": 1e-6, "skew_s": 1e-7}
        | {"p95_s": 2 * seconds, "p99_s": 3 * seconds if seconds > 1 else np.nan}
        | {"group": 1 + (block == 0), "n": 100}
        | {column: value}
        | ({"environment": value.removesuffix("-again")} if column == "arm" else {})
        for value, medians in times.items()
        for block, seconds in enumerate(medians)
    ]
    measured = ("median_s", "p95_s", "p99_s", "bound_s", "skew_s", "group", "n")
    in_turns = ("turns", "company", "contest")
    return pd.DataFrame(rows, columns=["block", "arm", *FACTORS, *measured, *in_turns])
