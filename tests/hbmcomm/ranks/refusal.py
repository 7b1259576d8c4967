"""How rank programs check that a call is refused, and how they give a communicator up."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def refused(
    error: type[BaseException] | tuple[type[BaseException], ...], words: str = ""
) -> Iterator[None]:
    """Fails unless the body raises such an error with these words in its message."""
    try:
        yield
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError(f"no {error} with {words!r}")


def give_up(comm: Any) -> None:
    """Leave a communicator as an error inside its block does, which the other ranks do not have."""
    with contextlib.suppress(LookupError), comm:
        raise LookupError
