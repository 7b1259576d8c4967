"""Makes the errors of hbmcomm errors of MPI: with codes and classes, for MPI's error handlers.

Importing this module makes `MPI.Exception` a base of `HbmcommError`, so that `except MPI.Exception`
catches what a collective raises. The classes themselves are in `hbmcomm.errors`, which programs
without MPI import too.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

from hbmcomm.errors import HbmcommError
from hbmcomm.transports.native import lib

_FORKS = lib.hbm_forks()
_codes: dict[type, int] = {}
"""MPI's error code of each class. Its text is that of the last error that asked for it."""


class _Coded(MPI.Exception):
    """MPI's view of an error: its number is made when it is first needed."""

    def __init__(self, *arguments: object) -> None:
        RuntimeError.__init__(self, *arguments)

    def __int__(self) -> int:
        return _code(type(self), str(self)) if _may_call_mpi() else MPI.ERR_OTHER

    def __repr__(self) -> str:
        return RuntimeError.__repr__(self)

    def __str__(self) -> str:
        return RuntimeError.__str__(self)

    def Get_error_class(self) -> int:
        return super().Get_error_class() if _may_call_mpi() else MPI.ERR_OTHER

    def Get_error_string(self) -> str:
        return str(self)


HbmcommError.__bases__ = (*HbmcommError.__bases__, _Coded)


def reported(comm: MPI.Comm, error: BaseException) -> BaseException:
    """An error, after the error handler of its communicator has seen it.

    ERRORS_ARE_FATAL and ERRORS_ABORT end the job here, with the message. Errors that are not
    hbmcomm's have no handler: an interrupt, and those of MPI, which has called it already.
    """
    if isinstance(error, HbmcommError) and _may_call_mpi():
        owner = comm if comm != MPI.COMM_NULL else MPI.COMM_SELF
        handler = owner.Get_errhandler()
        if handler != MPI.ERRORS_RETURN:
            if handler in (MPI.ERRORS_ARE_FATAL, MPI.ERRORS_ABORT):
                kind = type(error).__name__
                print(f"rank {owner.rank} ends: {kind}: {error}", file=sys.stderr, flush=True)
            owner.Call_errhandler(_code(type(error), str(error)))
    return error


def _may_call_mpi() -> bool:
    """Not in the child of a fork, nor on a thread that MPI does not expect."""
    if not MPI.Is_initialized() or MPI.Is_finalized() or lib.hbm_forks() != _FORKS:
        return False
    return MPI.Query_thread() >= MPI.THREAD_SERIALIZED or MPI.Is_thread_main()


def _code(kind: type, text: str) -> int:
    """The error code of a class of errors, with the text of one of them."""
    if kind not in _codes:
        error_class = MPI.Add_error_class()
        MPI.Add_error_string(error_class, f"hbmcomm.{kind.__name__}")
        _codes[kind] = MPI.Add_error_code(error_class)
    code = _codes[kind]
    MPI.Add_error_string(code, text.encode()[: MPI.MAX_ERROR_STRING - 1].decode(errors="ignore"))
    return code
