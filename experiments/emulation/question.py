"""What check.py looks at and where it writes, as plain values for the driver and the guest."""

from experiments.emulation.machine import PAGE, Description

FOUND = "found.json"
"""The file of a check's folder that rank 0 writes."""

HBW_KINDS = ("hbw", "hbw_preferred", "hbw_interleave", "hbw_all")
KINDS = ("regular", *HBW_KINDS)
PAGES = 128
"""Pages of an array, at least: some for each of 16 nodes, few because HBM nodes are small."""


def ranks(description: Description) -> int:
    """One rank for each node with CPUs, and two at least, because ranks must share memory."""
    return max(2, len(description.cpu_nodes))


def nbytes(description: Description) -> int:
    """Bytes of each array: the same number of whole pages for each rank."""
    count = ranks(description)
    return -(-PAGES // count) * count * PAGE
