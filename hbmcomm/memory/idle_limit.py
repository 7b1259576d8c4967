"""How much free shared memory a process keeps populated; the system gets the rest back.

HBMCOMM_ARENA_KEEP, or a share of the nodes' memory.
"""

from __future__ import annotations

import os

from hbmcomm.errors import HbmcommError
from hbmcomm.memory.kinds import Kind
from hbmcomm.memory.machine import current
from hbmcomm.quantities import BYTES, MIB, parse_quantity

VARIABLE = "HBMCOMM_ARENA_KEEP"
MOST = 256 * MIB
"""Bytes kept unless the variable asks for more."""
PART = 8
"""The default is at most one part in so many of a process's even share of its nodes."""


def configured() -> int | None:
    """The bytes that HBMCOMM_ARENA_KEEP asks for; None where it is not set.

    Raises:
        HbmcommError: It is not a size.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    nbytes = parse_quantity(text, BYTES)
    if nbytes is None:
        raise HbmcommError(
            f"{VARIABLE}={text} is not a size; write bytes, or a number and a unit such as 64MiB"
        )
    return min(nbytes, 2**62)


def default(kind: Kind, ranks: int) -> int:
    """The bytes of a kind that each of so many processes keeps unless it is configured."""
    totals = {node.id: node.total_bytes for node in current().nodes}
    total = sum(totals.get(node, 0) for node in kind.nodes)
    return min(MOST, total // ranks // PART) if total else MOST
