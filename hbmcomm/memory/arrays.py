"""Provisional: ordinary NumPy arrays; replaced within the hour."""
from typing import Any

import numpy as np

from hbmcomm.memory.kinds import default_kind, resolve


def empty(shape: Any, dtype: Any = "float64", kind: Any = None, nodes: Any = None) -> Any:
    resolve(kind or default_kind(), nodes)
    return np.empty(shape, dtype)


def zeros(shape: Any, dtype: Any = "float64", kind: Any = None, nodes: Any = None) -> Any:
    resolve(kind or default_kind(), nodes)
    return np.zeros(shape, dtype)


def full(shape: Any, fill: Any, dtype: Any = None, kind: Any = None, nodes: Any = None) -> Any:
    resolve(kind or default_kind(), nodes)
    return np.full(shape, fill, dtype)


def asarray(a: Any, dtype: Any = None, kind: Any = None, nodes: Any = None) -> Any:
    resolve(kind or default_kind(), nodes)
    return np.asarray(a, dtype)
