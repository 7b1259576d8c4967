"""Transports by name: how a collective moves data.

A transport is a subclass of `MPI.Intracomm` that overrides the calls that it does itself; all
others stay mpi4py's. A new one is a file here and a line in the table.
"""

from __future__ import annotations

from mpi4py import MPI

from hbmcomm.collectives.mpi import Buffers
from hbmcomm.collectives.pickled import Pickles

TRANSPORTS: dict[str, type[MPI.Intracomm]] = {"mpi": Buffers, "pickle": Pickles}

AUTO = "mpi"
"""What "auto" means."""
