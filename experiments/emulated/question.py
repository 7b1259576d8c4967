"""What check.py is asked and where it answers: plain values, for the driver and the guest alike."""

from typing import Any

from experiments.emulated.model import Description

QUESTION, FOUND = "check.json", "found.json"
"""Files of a check's folder: what is asked, and what rank 0 found."""

HBW_KINDS = ("hbw", "hbw_preferred", "hbw_interleave", "hbw_all")
KINDS = ("regular", *HBW_KINDS)
NBYTES = 512 * 1024
"""Bytes of each array: whole pages for each of up to 16 nodes and 8 ranks; HBM nodes are small."""


def ranks(description: Description) -> int:
    """One for each node with CPUs, and two at least: memory is shared by two or more."""
    return max(2, len(description.cpu_nodes))


def question() -> dict[str, Any]:
    """The content of QUESTION. `binding` is one of measure.binding's."""
    return {"binding": "spread", "kinds": list(KINDS), "bytes": NBYTES}
