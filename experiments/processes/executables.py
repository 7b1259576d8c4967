"""Finds programs of the system, also in root's folders that are not on a user's PATH."""

import os
import shutil

ADMINISTRATION = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def find(name: str) -> str | None:
    """The program's path, or None where it is not installed."""
    folders = (os.environ.get("PATH", os.defpath), *ADMINISTRATION)
    return shutil.which(name, path=os.pathsep.join(folders))
