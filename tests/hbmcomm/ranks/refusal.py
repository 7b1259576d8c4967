"""How rank programs check that a call is refused."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def refused(
    error: type[BaseException] | tuple[type[BaseException], ...], words: str = ""
) -> Iterator[None]:
    """Fails unless the body raises such an error with these words in its message."""
    try:
        yield
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(f"no {error} with {words!r}")
