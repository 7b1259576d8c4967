"""Many mistakes in one test: each is refused with its own words."""

from collections.abc import Callable
from typing import Any


def refusal(error: type[Exception], function: Callable[..., Any], *given: Any, **named: Any) -> str:
    """The words of the error that a call raises; "" where it raises none."""
    try:
        function(*given, **named)
    except error as refused:
        return str(refused)
    return ""
