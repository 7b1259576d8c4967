"""What check.py looks at and where it writes, as plain values for the driver and the guest."""

PAGE = 4096  # bytes

FOUND = "found.json"
"""The file of a check's folder that rank 0 writes."""

HBW_KINDS = ("hbw", "hbw_preferred", "hbw_interleave", "hbw_all")
KINDS = ("regular", *HBW_KINDS)
PAGES = 128
"""Pages of an array, at least: some for each of 16 nodes, few because HBM nodes are small."""


def ranks(nodes: int) -> int:
    """One rank for each node with CPUs, and two at least, because ranks must share memory."""
    return max(2, nodes)


def nbytes(nodes: int) -> int:
    """Bytes of each array: the same number of whole pages for each rank."""
    count = ranks(nodes)
    return -(-PAGES // count) * count * PAGE
