"""The public names of the library; nothing is implemented here."""

from typing import TYPE_CHECKING

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
from hbmcomm.memory.placement import placement, placement_method
from hbmcomm.memory.topology import Topology
from hbmcomm.transports.tuning import Threshold, tuning

if TYPE_CHECKING:
    from hbmcomm.communicator import Communicator
    from hbmcomm.transports.plans import Plan

    __version__: str

__all__ = [
    "KINDS",
    "ArenaUnavailable",
    "CallMismatch",
    "Communicator",
    "HbmcommError",
    "Kind",
    "KindUnavailable",
    "OutOfMemory",
    "PeerError",
    "PlacementUnknown",
    "Plan",
    "Threshold",
    "Topology",
    "__version__",
    "asarray",
    "default_kind",
    "empty",
    "empty_like",
    "full",
    "memkind_version",
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


def __dir__() -> list[str]:
    return sorted(__all__)


def _late(name: str) -> object:
    """Names that are imported at their first use: arrays need neither MPI nor a version.

    Importing Communicator or Plan starts MPI. The version is that of the installed package;
    "unknown" for sources that are on the path without one.
    """
    if name == "Communicator":
        from hbmcomm.communicator import Communicator

        return Communicator
    if name == "Plan":
        from hbmcomm.transports.plans import Plan

        return Plan
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("hbmcomm")
        except metadata.PackageNotFoundError:
            return "unknown"
    raise AttributeError(f"module 'hbmcomm' has no attribute {name!r}")


if not TYPE_CHECKING:  # else type checkers would accept misspelt names
    __getattr__ = _late
