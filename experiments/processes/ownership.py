"""What belongs to this user alone: folders and files of others are neither trusted nor written.

Names that lead to a folder are trusted: whoever can rename its parents is the caller's concern.
"""

import errno
import hashlib
import os
import stat
from pathlib import Path

from experiments.model.errors import ExperimentsError

OTHERS = stat.S_IWGRP | stat.S_IWOTH


def is_own(folder: Path) -> bool:
    """Whether a folder is this user's, and nobody else can write into it."""
    state = folder.stat()
    return state.st_uid == os.geteuid() and not state.st_mode & OTHERS


def refuse_others(folder: Path) -> None:
    """Refuse a folder that another user owns or can write into.

    What such a folder names may be that user's choice, and what is written there may go elsewhere.

    Raises:
        ExperimentsError: with the one thing to do.
    """
    owner, own = folder.stat().st_uid, os.geteuid()
    if owner != own:
        raise ExperimentsError(
            f"{folder} belongs to user {owner}, and this is user {own}: what another user keeps "
            "there is not trusted; name a folder of your own with --out, or run the command as its "
            "owner"
        )
    if not is_own(folder):
        raise ExperimentsError(
            f"other users can write into {folder}, so that it may hold what they put there; see "
            f"that all of it is yours, then: chmod go-w {folder}"
        )


def digest_of(folder: Path) -> str:
    """Of where a folder is: in a name, it keeps what files of other folders name apart from it."""
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:12]


def open_own(path: Path, flags: int) -> int:
    """A descriptor of a plain file of this user, which has no other name; made private.

    Args:
        flags: of open(2); links are not followed, and it is closed at exec.

    Raises:
        ExperimentsError: a link, another user's file or no file at all has that name.
    """
    try:
        descriptor = os.open(
            path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR
        )
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EACCES):
            raise
        raise _foreign(path) from error
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_nlink > 1:
        os.close(descriptor)
        raise _foreign(path)
    os.fchmod(descriptor, stat.S_IRUSR | stat.S_IWUSR)  # a copy may have another mode
    return descriptor


def _foreign(path: Path) -> ExperimentsError:
    return ExperimentsError(
        f"{path} is no plain file of user {os.geteuid()} alone, so it is not read or written: see "
        "how it came there, and remove it, or name another --out"
    )
