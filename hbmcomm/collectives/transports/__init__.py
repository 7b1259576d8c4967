"""Transports by name: how a collective moves data.

A transport is a subclass of `Transport` that overrides the calls that it does itself; all others
stay mpi4py's. To add one, add a file here and a line in the table.
"""

from __future__ import annotations

from hbmcomm.collectives.transports.direct import Direct
from hbmcomm.collectives.transports.hierarchical import Hierarchical
from hbmcomm.collectives.transports.mpi import Buffers
from hbmcomm.collectives.transports.pickled import Pickles
from hbmcomm.collectives.transports.transport import Transport

TRANSPORTS: dict[str, type[Transport]] = {
    "direct": Direct,
    "hierarchical": Hierarchical,
    "mpi": Buffers,
    "pickle": Pickles,
}

AUTO = ("direct", "hierarchical", "mpi")
"""The transports that "auto" tries, in order, until one works on all ranks."""
