"""The errors of hbmcomm.

Each message has three parts: what was asked, what was found, and what to do next. This module needs
no MPI; where a program has a Communicator, `transports/mpi_errors.py` makes `MPI.Exception` a
base of these classes too.
"""


class _Error(Exception):
    """Python changes the bases of a class only where they are not built in."""


class HbmcommError(_Error):
    """Base class of the errors that hbmcomm defines.

    In a program with a Communicator all of them are also an `mpi4py.MPI.Exception`.
    """


class KindUnavailable(HbmcommError):
    """This machine does not have a kind of memory, or this process may not use it."""


class OutOfMemory(HbmcommError, MemoryError):
    """A strict kind has less free memory than was asked for; nothing was allocated."""


class PlacementUnknown(HbmcommError):
    """The kernel refuses every method of asking on which nodes pages are."""


class ArenaUnavailable(HbmcommError):
    """Some ranks cannot map each other's memory, which transport direct needs."""


class CallMismatch(HbmcommError):
    """Ranks called different collectives at the same point, or one with arguments that differ.

    The communicator is unusable.
    """


class PeerError(HbmcommError):
    """A rank died or left while others waited for it; the communicator is unusable."""
