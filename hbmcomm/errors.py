"""The errors a user of hbmcomm can meet, each with one clear message.

What was asked, what was found, what to do next: the raiser writes all three.
"""


class HbmcommError(Exception):
    """Base of every error that hbmcomm raises for reasons of its own."""


class KindUnavailable(HbmcommError):
    """A kind of memory that this machine has not, or that this process may not use."""


class OutOfMemory(HbmcommError, MemoryError):
    """A strict kind has less memory free than was asked for; nothing was allocated."""


class PlacementUnknown(HbmcommError):
    """The kernel refuses every way of asking where pages are."""


class ArenaUnavailable(HbmcommError):
    """Some ranks cannot map each other's memory; transport direct needs that."""


class CallMismatch(HbmcommError):
    """Ranks called different collectives at the same point; the communicator is unusable now."""


class PeerError(HbmcommError):
    """A rank died or left while others counted on it; the communicator is unusable now."""
