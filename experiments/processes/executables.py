"""Where a program of the system lies. Root's folders count for everyone, on PATH or not."""

import os
import shutil

ADMINISTRATION = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def find(name: str) -> str | None:
    """The program's path, or None where it is not installed."""
    folders = (os.environ.get("PATH", os.defpath), *ADMINISTRATION)
    return shutil.which(name, path=os.pathsep.join(folders))
