"""Transport `direct`: the C core moves the data through memory that all ranks map.

Its collectives are methods in C, which read plain NumPy arrays as they are. Arguments that the core
cannot read take the slow path (`direct_base`).
"""

from __future__ import annotations

import functools
from typing import Any

from mpi4py import MPI

from hbmcomm.collectives.calls.requests import Request
from hbmcomm.collectives.core.native import FOREIGN, OPERATIONS, REDUCTIONS, lib
from hbmcomm.collectives.transports.direct_base import DirectBase
from hbmcomm.collectives.transports.nonblocking import Nonblocking


class Direct(Nonblocking, DirectBase):
    """The collectives of the C core; arguments, results and errors as in mpi4py."""


def _put_methods() -> None:
    """Give the class its collectives: methods of the core with the signatures of mpi4py's.

    Raises:
        ImportError: mpi4py's functions do not show their signatures.
    """
    lib.hbm_reductions([id(getattr(MPI, name)) for name in REDUCTIONS], len(REDUCTIONS))
    for code, name in enumerate(OPERATIONS):
        for method, request in ((name, None), (f"I{name.lower()}", Request)):
            theirs = getattr(MPI.Intracomm, method)
            if not lib.hbm_add_method(id(Direct), id(theirs), code, id(name), id(request)):
                raise ImportError(f"hbmcomm cannot read the signature of mpi4py's {method}")


_put_methods()


def _announced(name: str) -> Any:
    original = getattr(MPI.Intracomm, name)

    @functools.wraps(original)
    def call(self: Direct, *arguments: Any, **named: Any) -> Any:
        self._announce(name)
        return original(self, *arguments, **named)

    return call


for _name in FOREIGN:
    if _name not in OPERATIONS:
        setattr(Direct, _name, _announced(_name))
