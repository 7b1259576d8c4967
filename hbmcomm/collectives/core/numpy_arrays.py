"""Lets the core read the fields of NumPy arrays itself, where they are as it expects them."""

from __future__ import annotations

from functools import cache

import numpy as np
from mpi4py import MPI

from hbmcomm.collectives.core.native import DTYPES, ffi, lib


@cache
def register() -> bool:
    """Whether the core reads arrays from now on; else Python reads them for every call.

    It does not in implementations of Python with objects that are not C structures.
    """
    lib.hbm_numpy(id(np.ndarray), id(MPI.IN_PLACE))
    if _reads_arrays():
        return True
    lib.hbm_numpy(0, 0)
    return False


def _reads_arrays() -> bool:
    """Whether the core reads an array's fields as NumPy means them."""
    address, entries = ffi.new("uintptr_t *"), ffi.new("uint64_t *")
    for array in (np.zeros((3, 5), "float32"), np.zeros(7, "int16")[2:], np.zeros(0, "complex128")):
        code = lib.hbm_read_array(id(array), 1, address, entries)
        if code < 0 or DTYPES[code] != array.dtype.name:
            return False
        if (address[0], entries[0]) != (array.__array_interface__["data"][0], array.size):
            return False
    awkward = (np.zeros((4, 4))[:, 1], np.zeros(3, ">f8"), np.zeros(3, "S4"))
    return all(lib.hbm_read_array(id(array), 1, address, entries) < 0 for array in awkward)
