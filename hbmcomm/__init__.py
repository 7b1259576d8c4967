"""The public names of the library; nothing is implemented here."""

import importlib
from typing import TYPE_CHECKING

import hbmcomm.ending  # noqa: F401  # its exit handlers are registered here
from hbmcomm.errors import (
    ArenaUnavailable,
    CallMismatch,
    HbmcommError,
    KindUnavailable,
    OutOfMemory,
    PeerError,
    PlacementUnknown,
)
from hbmcomm.memory.arrays import (
    asarray,
    empty,
    empty_like,
    full,
    ones,
    ones_like,
    source,
    zeros,
    zeros_like,
)
from hbmcomm.memory.kinds import KINDS, Kind, default_kind, resolve
from hbmcomm.memory.machine import topology
from hbmcomm.memory.memkind import memkind_version
from hbmcomm.memory.numpy_memory import numpy_memory
from hbmcomm.memory.placement import node_of, placement, placement_method
from hbmcomm.memory.topology import Topology
from hbmcomm.transports.tuning import Threshold, tuning

if TYPE_CHECKING:
    from hbmcomm.communicator import Communicator
    from hbmcomm.sharing import Flags, SharedArray
    from hbmcomm.transports.plans import Plan
    from hbmcomm.watching import Watch

    __version__: str

__all__ = [
    "KINDS",
    "ArenaUnavailable",
    "CallMismatch",
    "Communicator",
    "Flags",
    "HbmcommError",
    "Kind",
    "KindUnavailable",
    "OutOfMemory",
    "PeerError",
    "PlacementUnknown",
    "Plan",
    "SharedArray",
    "Threshold",
    "Topology",
    "Watch",
    "__version__",
    "asarray",
    "default_kind",
    "empty",
    "empty_like",
    "full",
    "memkind_version",
    "node_of",
    "numpy_memory",
    "ones",
    "ones_like",
    "placement",
    "placement_method",
    "resolve",
    "source",
    "topology",
    "tuning",
    "zeros",
    "zeros_like",
]


_WITH_MPI = {
    "Communicator": "communicator",
    "Flags": "sharing",
    "Plan": "transports.plans",
    "SharedArray": "sharing",
    "Watch": "watching",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def _late(name: str) -> object:
    """Names that are imported at their first use: arrays need neither MPI nor a version.

    Importing one of _WITH_MPI starts MPI. The version is that of the installed package; "unknown"
    for sources that are on the path without one.
    """
    if name in _WITH_MPI:
        attribute: object = getattr(importlib.import_module(f"{__name__}.{_WITH_MPI[name]}"), name)
        return attribute
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("hbmcomm")
        except metadata.PackageNotFoundError:
            return "unknown"
    raise AttributeError(f"module 'hbmcomm' has no attribute {name!r}")


if not TYPE_CHECKING:  # else type checkers would accept misspelt names
    __getattr__ = _late
