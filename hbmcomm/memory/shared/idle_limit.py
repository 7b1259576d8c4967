"""How much free shared memory a process keeps populated; the system gets the rest back.

HBMCOMM_ARENA_KEEP, or a share of the nodes' memory.
"""

from __future__ import annotations

import os
import re

from hbmcomm.errors import HbmcommError
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.topology.machine import current

VARIABLE = "HBMCOMM_ARENA_KEEP"
MOST = 256 * 2**20
"""Bytes kept unless the variable asks for more."""
PART = 8
"""The default is at most one part in so many of a process's even share of its nodes."""

_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def configured() -> int | None:
    """The bytes that HBMCOMM_ARENA_KEEP asks for; None where it is not set.

    Raises:
        HbmcommError: It is no size.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,15})\s*(|B|KiB|MiB|GiB|TiB)", text)
    if found is None:
        raise HbmcommError(
            f"{VARIABLE}={text} is no size; write bytes, or a number and a unit such as 64MiB"
        )
    return min(int(found[1]) * _UNITS[found[2]], 2**62)


def default(kind: Kind, ranks: int) -> int:
    """The bytes of a kind that each of so many processes keeps unless it is configured."""
    totals = {node.id: node.total_bytes for node in current().nodes}
    total = sum(totals.get(node, 0) for node in kind.nodes)
    return min(MOST, total // ranks // PART) if total else MOST
