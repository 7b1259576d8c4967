"""Provisional; replaced within the hour."""
from typing import Any


def placement(array: Any) -> dict[int, int]:
    return {0: array.nbytes}


def placement_method() -> str:
    return "provisional"
