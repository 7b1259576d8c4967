"""What users may change of the way between hosts; rank 0's environment counts for all ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from hbmcomm.errors import HbmcommError
from hbmcomm.quantities import BYTES, parse_quantity

ALGORITHM, LEADERS = "HBMCOMM_BETWEEN_HOSTS", "HBMCOMM_LEADERS"
SEGMENT = "HBMCOMM_SEGMENT_BYTES"
LEAST_SEGMENT = 1024
AUTO = "auto"
NAMES = (AUTO, "ring", "recursive-doubling", "rabenseifner", "tree")
"""The algorithms of Allreduce between hosts, by the core's numbers."""


class Settings(NamedTuple):
    """How ranks of several hosts work together."""

    algorithm: str = AUTO
    """Of NAMES."""
    leaders: int | None = None
    """Of each host; None: one for each NUMA node that its ranks are on."""
    segment_bytes: int | None = None
    """Most of a leader's slice; None: as the operation has it."""


def settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from environment variables.

    Raises:
        HbmcommError: A variable's value is not allowed.
    """
    chosen = Settings()
    if algorithm := environ.get(ALGORITHM, "").strip():
        if algorithm not in NAMES:
            known = ", ".join(NAMES)
            raise HbmcommError(f"{ALGORITHM}={algorithm} is unknown; take one of {known}")
        chosen = chosen._replace(algorithm=algorithm)
    if text := environ.get(LEADERS, "").strip():
        chosen = chosen._replace(leaders=_number(LEADERS, text, {"": 1}, 1, "such as 2"))
    if text := environ.get(SEGMENT, "").strip():
        nbytes = _number(SEGMENT, text, BYTES, LEAST_SEGMENT, "of bytes, such as 512KiB")
        chosen = chosen._replace(segment_bytes=nbytes)
    return chosen


def _number(name: str, text: str, units: Mapping[str, int], least: int, form: str) -> int:
    value = parse_quantity(text, units)
    if value is None or value < least:
        raise HbmcommError(f"{name}={text}: write a whole number {form}, at least {least:,}")
    return value
