"""The input and the files of check.py, as plain values for the driver and the guest."""

from typing import Any

from experiments.emulation.machine import PAGE, Description

QUESTION, FOUND = "check.json", "found.json"
"""Files of a check's folder: the input, and what rank 0 found."""

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


def question(description: Description) -> dict[str, Any]:
    """The content of QUESTION. programs/machine/binding.py explains `binding`."""
    return {"binding": "spread", "kinds": list(KINDS), "bytes": nbytes(description)}
