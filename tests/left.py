"""What the processes of a test leave in /dev/shm, whatever other jobs do there meanwhile."""

import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.processes import tracking
from experiments.provision import passthrough

FIRST_GROUP = 2_000_000
"""Groups from here on are nobody's."""
PR_SET_DUMPABLE = 4


def _become(real: int, effective: int, saved: int) -> None:
    """Change this process's groups; the kernel then hides it from ranks, which prctl(2) undoes."""
    os.setresgid(real, effective, saved)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


@contextlib.contextmanager
def own_files(*patterns: str, containers: bool = False) -> Iterator[Callable[[], set[Path]]]:
    """A function that gives the files which processes begun in this block have made in /dev/shm.

    A file has the group of the process that made it. Where root runs the tests, processes of the
    block are in a group of their own. Other users' files never count; without root, those of other
    jobs of this user do that no living process maps.

    Args:
        patterns: of names; none: any.
        containers: whether files of this user's containers count as well.
    """
    user, former = os.geteuid(), os.getresgid()
    group = former[1]
    if user == 0:
        with contextlib.suppress(OSError):  # this sandbox has no such group
            _become(*(FIRST_GROUP + os.getpid(),) * 2, former[2])
            group = os.getegid()
    owners = {(user, group), *([passthrough.owner()] if containers else [])}
    apart = group != former[1]

    def files() -> set[Path]:
        made = set[Path]()
        for path in {path for pattern in patterns or ("*",) for path in tracking.SHM.glob(pattern)}:
            with contextlib.suppress(FileNotFoundError):
                state = path.lstat()
                if (state.st_uid, state.st_gid) in owners:
                    made.add(path)
        made -= before
        return made if apart or not made else made - tracking.mapped()

    before = set[Path]()
    before = files()
    try:
        yield files
    finally:
        if apart:
            _become(*former)


@contextlib.contextmanager
def nothing_left(
    *patterns: str, besides: tuple[str, ...] = (), containers: bool = False
) -> Iterator[None]:
    """Fail where the block's processes leave files of these names that none of them maps.

    Args:
        besides: patterns of names that may stay.
    """
    with own_files(*patterns, containers=containers) as files:
        yield

        def orphans() -> set[Path]:
            made = {path for path in files() if not any(map(path.match, besides))}
            return made - tracking.mapped() if made else made

        if left := orphans():
            time.sleep(tracking.MAP_PATIENCE)  # what ends may map them for a moment
            left &= orphans()
        assert not left, f"left in {tracking.SHM}: {', '.join(sorted(path.name for path in left))}"
