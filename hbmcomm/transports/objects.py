"""Lower-case collectives, which pass Python objects; objects.c does them, and says how."""

from __future__ import annotations

import pickle
from gc import get_referents

from mpi4py import MPI

from hbmcomm.errors import PeerError
from hbmcomm.transports.native import OPERATIONS, lib
from hbmcomm.transports.transport import Transport

CALLS = (
    *("bcast", "scatter", "gather", "allgather", "alltoall"),
    *("reduce", "allreduce", "scan", "exscan"),
)


class Objects(Transport):
    """What calls of objects need from Python; `put_calls` gives a class the calls."""

    def _miss(self, rank: int, name: str) -> None:
        """Raise the error of a rank that should have received an object."""
        raise PeerError(f"rank {rank} has no object for {name}: it could not pickle it")


def put_calls(owner: type) -> None:
    """Give a class the lower-case calls, with the signatures of mpi4py's.

    Raises:
        ImportError: mpi4py's functions do not show their signatures.
    """
    known = (pickle.dumps, pickle.loads, MPI.pickle, MPI.buffer, get_referents)
    lib.hbm_pickles(*map(id, known), pickle.HIGHEST_PROTOCOL)
    for name in CALLS:
        theirs, code = getattr(MPI.Intracomm, name), OPERATIONS.index(name.capitalize())
        if not lib.hbm_add_method(
            id(owner), id(theirs), lib.HBM_OBJECTS + code, id(name), id(None)
        ):
            raise ImportError(f"hbmcomm cannot read the signature of mpi4py's {name}")
