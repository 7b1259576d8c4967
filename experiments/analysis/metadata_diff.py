"""What launches may not differ in, and what every two of them differ in. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from experiments.results.result import Result

Recorded = dict[str, list[str]]
"""The distinct values under each dotted key."""

ALWAYS_DIFFERENT = ("load",)
"""Last parts of keys that differ between any two launches and explain nothing."""

REFUSED = (
    "versions.mpi",
    "versions.mpi4py",
    "versions.numpy",
    "versions.torch",
    "hashes.hbmcomm",
    "hashes.core",
    "hashes.experiments",
)
"""What must be the same in every launch of a campaign, or nothing in it can be compared."""


def refusals(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """What of REFUSED differs between what two launches recorded: {key: (first's, other's)}."""
    tables = flatten(first), flatten(other)
    values = {key: (tables[0].get(key, ""), tables[1].get(key, "")) for key in REFUSED}
    return {key: pair for key, pair in values.items() if pair[0] != pair[1]}


def distinct(
    recorded: Iterable[tuple[Result, Mapping[str, str]]],
) -> dict[tuple[str, str], Recorded]:
    """What launches recorded, by MPI and arm.

    Args:
        recorded: each launch with its values by dotted key.
    """
    by_arm: dict[tuple[str, str], Recorded] = defaultdict(lambda: defaultdict(list))
    for launch, values in recorded:
        seen = by_arm[launch.launch.mpi, launch.launch.arm]
        for key, value in values.items():
            seen[key] += [] if value in seen[key] else [value]
    return by_arm


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested tables as {"a.b": "text"}."""
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = str(value)
    return flat
