"""Provisional: replaced within the hour by the reader of sysfs."""
from typing import Any


def topology(sysfs: str = "/sys", procfs: str = "/proc") -> Any:
    raise NotImplementedError
