"""Provisional; replaced within the hour."""
from contextlib import contextmanager
from typing import Any


@contextmanager
def numpy_memory(kind: str) -> Any:
    yield
