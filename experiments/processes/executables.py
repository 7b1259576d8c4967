"""Finds programs of the system, also in root's folders that are not on a user's PATH."""

import os
import shutil

ADMINISTRATION = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def find(name: str) -> str | None:
    """The program's path, or None where it is not installed."""
    return shutil.which(name, path=path())


def path() -> str:
    """PATH with those folders."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *ADMINISTRATION))
