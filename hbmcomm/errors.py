"""The errors a user of hbmcomm can meet, each with one clear message.

What was asked, what was found, what to do next: the raiser writes all three; nothing here formats anything.
"""


class HbmcommError(Exception):
    """Base of every error that hbmcomm raises for reasons of its own."""


class KindUnavailable(HbmcommError):
    """A kind of memory that exists in general but not on this machine, or not for this process."""


class OutOfMemory(HbmcommError, MemoryError):
    """The nodes of a strict kind have less memory free than was asked for; nothing was allocated."""


class PlacementUnknown(HbmcommError):
    """The kernel refuses every way of asking where pages are."""
