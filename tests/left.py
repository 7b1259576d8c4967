"""What a test leaves in /dev/shm, where other tests run beside it."""

import contextlib
import time
from collections.abc import Iterator

from experiments.processes import tracking


@contextlib.contextmanager
def nothing_left(pattern: str = "hbmcomm.*") -> Iterator[None]:
    """Fail where files of that name stay that no living process maps.

    A file of another test counts no longer once that test has mapped it.
    """

    def orphans() -> set[str]:
        found = set(tracking.SHM.glob(pattern)) - before
        return {path.name for path in found - tracking.mapped()} if found else set()

    before = set(tracking.SHM.glob(pattern))
    yield
    if left := orphans():
        time.sleep(tracking.MAP_PATIENCE)
        left &= orphans()
    assert not left
