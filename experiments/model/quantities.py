"""Sizes and rank counts as a user writes them: "1KiB:64MiB", "2,4,8"; counted things. Pure."""

import re
from collections.abc import Iterable

from experiments.model.toml_validation import SpecError

UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
RANKS_PER_CORE = 8  # more than this and every rank mostly waits for its turn


def counted(count: int, thing: str) -> str:
    """ "1 paired block", "6 paired blocks"."""
    return f"{count} {thing}{'s' * (count != 1)}"


def check_rank_counts(counts: Iterable[int], cores: int, machine: str = "this machine") -> None:
    """Refuse more ranks than a machine's cores can take turns on (RANKS_PER_CORE each)."""
    limit = cores * RANKS_PER_CORE
    worst = max(counts)
    if worst > limit:
        raise SpecError(
            f"{worst} ranks were asked for; {machine} has {cores} cores and can take turns on "
            f"{limit} ranks at most: pass --ranks {min(limit, max(2, cores))}"
        )


def parse_size(text: str) -> int:
    """Bytes of "64", "1KiB", "16 MiB" or "2GiB"."""
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", text)
    if not match or match[2] not in UNITS:
        units = ", ".join(unit for unit in UNITS if unit)
        raise SpecError(f"size {text!r} does not parse; write a whole number and one of {units}")
    return int(match[1]) * UNITS[match[2]]


def parse_sizes(text: str) -> tuple[int, ...]:
    """Bytes of "1KiB:64MiB" (doubling), "1KiB:64MiB:4" (quadrupling) or "1KiB,1MiB"."""
    if ":" not in text:
        return tuple(parse_size(part) for part in text.split(","))
    parts = text.split(":")
    step = parts[2] if len(parts) > 2 else "2"
    if len(parts) > 3 or not step.isdigit() or int(step) < 2:
        raise SpecError(f"sizes {text!r} do not parse; write FIRST:LAST or FIRST:LAST:FACTOR")
    first, last = parse_size(parts[0]), parse_size(parts[1])
    if not 0 < first <= last:
        raise SpecError(f"sizes {text!r} run from {first} to {last} bytes; put the smaller first")
    sizes = [first]
    while sizes[-1] * int(step) <= last:
        sizes.append(sizes[-1] * int(step))
    return tuple(sizes)


def parse_ranks(text: str) -> list[int]:
    """Rank counts of "2,4,8"."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SpecError(f"ranks {text!r} do not parse; write whole numbers: 2,4,8") from None
