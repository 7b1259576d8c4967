"""What check.py is asked and where it answers: plain values, for the driver and the guest alike."""

from typing import Any

from experiments.emulation.machine import PAGE, Description

QUESTION, FOUND = "check.json", "found.json"
"""Files of a check's folder: what is asked, and what rank 0 found."""

HBW_KINDS = ("hbw", "hbw_preferred", "hbw_interleave", "hbw_all")
KINDS = ("regular", *HBW_KINDS)
PAGES = 128
"""Of an array, at least: some for each of 16 nodes, and few, for HBM nodes are small."""


def ranks(description: Description) -> int:
    """One for each node with CPUs, and two at least: memory is shared by two or more."""
    return max(2, len(description.cpu_nodes))


def nbytes(description: Description) -> int:
    """Of each array: the same number of whole pages for each rank."""
    count = ranks(description)
    return -(-PAGES // count) * count * PAGE


def question(description: Description) -> dict[str, Any]:
    """The content of QUESTION. `binding` is one of programs/machine/binding.py's."""
    return {"binding": "spread", "kinds": list(KINDS), "bytes": nbytes(description)}
