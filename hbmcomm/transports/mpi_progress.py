"""Connects the core's waits with MPI's: each makes progress on the other's operations.

Finds MPI's functions in the library that mpi4py has loaded, once, and passes them to the core.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from mpi4py import MPI

from hbmcomm.ending import at_end
from hbmcomm.transports.mpi_lock import handle_of
from hbmcomm.transports.native import ffi, lib

_FUNCTIONS = {
    "iprobe": "MPI_Iprobe",
    "grequest_start": "MPI_Grequest_start",
    "grequest_complete": "MPI_Grequest_complete",
    "wait": "MPI_Wait",
    "status_set_elements": "MPI_Status_set_elements",
    "status_set_cancelled": "MPI_Status_set_cancelled",
}
_MESSAGES = {
    "isend": "MPI_Isend",
    "irecv": "MPI_Irecv",
    "testsome": "MPI_Testsome",
    "is_complete": "MPIX_Request_is_complete",
}
_HOOKS = {"register_progress": "opal_progress_register", "async_start": "MPIX_Async_start"}
_THREADS = {
    MPI.THREAD_MULTIPLE: lib.HBM_MULTIPLE,
    MPI.THREAD_SERIALIZED: lib.HBM_SERIALIZED,
}
_NULL_STREAM = 0x3C000000  # MPIX_STREAM_NULL of mpi.h, where handles are integers of MPICH


@cache
def join() -> bool:
    """Whether MPI's waits and the core's make progress on each other's operations from now on."""
    library = ctypes.CDLL(MPI.__file__)
    functions = {field: _address(library, name) for field, name in _FUNCTIONS.items()}
    if not all(functions.values()):
        return False  # an mpi4py that does not export its MPI's functions
    hooks = {field: _address(library, name) for field, name in _HOOKS.items()}
    if handle_of(MPI.COMM_WORLD, MPI.Comm) >> 24 != 0x44:  # not a handle of MPICH's own ABI
        hooks["async_start"] = 0
    lib.hbm_use_mpi(
        ffi.new(
            "hbm_mpi *",
            functions
            | {field: _address(library, name) for field, name in _MESSAGES.items()}
            | hooks
            | {
                "world": handle_of(MPI.COMM_WORLD, MPI.Comm),
                "byte": handle_of(MPI.BYTE, MPI.Datatype),
                "stream": _NULL_STREAM,
                "null_request": handle_of(MPI.REQUEST_NULL, MPI.Request),
                "any_source": MPI.ANY_SOURCE,
                "last_tag": MPI.COMM_WORLD.Get_attr(MPI.TAG_UB),
                "error": MPI.ERR_OTHER,
                "handle_bytes": MPI._sizeof(MPI.Request),
                "handle_at": MPI._addressof(MPI.REQUEST_NULL) - id(MPI.REQUEST_NULL),
                "threads": _THREADS.get(MPI.Query_thread(), lib.HBM_FUNNELED),
                # without a hook, a thread of the core makes progress on them
                "serves_requests": any(hooks.values()) or MPI.Query_thread() == MPI.THREAD_MULTIPLE,
            },
        )
    )
    _end_with_mpi()
    return True


def serves_requests() -> bool:
    """Whether operations of the core may be in flight while a rank waits in MPI alone."""
    return join() and bool(lib.hbm_serves_requests())


def _address(library: ctypes.CDLL, name: str) -> int:
    try:
        function = getattr(library, name)
    except AttributeError:
        return 0
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _end_with_mpi() -> None:
    """Stop calls of MPI before it ends: at exit, or in MPI.Finalize()."""

    def end(*_: Any) -> None:
        lib.hbm_use_mpi(ffi.NULL)

    at_end(end)
    key = MPI.Comm.Create_keyval(delete_fn=end)
    MPI.COMM_SELF.Set_attr(key, None)
