"""What rank programs say of a call that must be refused."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def refused(
    error: type[BaseException] | tuple[type[BaseException], ...], words: str
) -> Iterator[None]:
    """Fails unless what is inside raises such an error with these words in it."""
    try:
        yield
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(f"no {error} with {words!r}")
