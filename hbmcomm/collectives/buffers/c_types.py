"""MPI's datatypes for C's arithmetic types, and the dtypes with which NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

_SIGNED = (MPI.SIGNED_CHAR, MPI.SHORT, MPI.INT, MPI.LONG, MPI.LONG_LONG)
_UNSIGNED = (
    MPI.UNSIGNED_CHAR,
    MPI.UNSIGNED_SHORT,
    MPI.UNSIGNED,
    MPI.UNSIGNED_LONG,
    MPI.UNSIGNED_LONG_LONG,
)
_OF_FIXED_SIZE = (
    MPI.INT8_T,
    MPI.INT16_T,
    MPI.INT32_T,
    MPI.INT64_T,
    MPI.UINT8_T,
    MPI.UINT16_T,
    MPI.UINT32_T,
    MPI.UINT64_T,
)
_OF_MPI = (MPI.AINT, MPI.OFFSET, MPI.COUNT)
_FLOATING = (MPI.FLOAT, MPI.DOUBLE, MPI.LONG_DOUBLE)
_COMPLEX = (MPI.C_FLOAT_COMPLEX, MPI.C_DOUBLE_COMPLEX, MPI.C_LONG_DOUBLE_COMPLEX)

C_TYPES: dict[int, np.dtype[Any]] = {
    datatype.handle: np.dtype(datatype.typechar)
    for group in (_SIGNED, _UNSIGNED, _OF_FIXED_SIZE, _OF_MPI, _FLOATING, _COMPLEX, (MPI.C_BOOL,))
    for datatype in group
}
"""By MPI's handle."""
