"""The arithmetic in C (update.h): functions over plain memory, in the binary of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hbmcomm._native import _core  # type: ignore[attr-defined]

ffi: Any = _core.ffi
lib: Any = _core.lib


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def pointers(arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
    """The addresses of arrays, which the caller keeps."""
    return ffi.new("void *[]", [ffi.cast("void *", address(array)) for array in arrays])
