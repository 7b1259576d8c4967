"""The version of the files that a campaign writes, and what a field means that a file lacks.

A version changes when a field changes its meaning; one that is added does not change it, and has a
default here, or in result.py, for files of before. So readers ask for no field's presence.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.model.errors import ExperimentsError
from experiments.model.launch import FORMAT

OLDEST = 2
"""What readers still understand; FORMAT is what writers write."""

HEADER: Mapping[str, Any] = {
    "missing": [],
    "command": [],
    "variables": {},
    "containers": {},
    "engines": {},
    "emulated": {},
    "machine": {},
    "reference_files": {},
}
SHARED = "layers"
"""Value of `files` where an arm runs from the files of Docker's containers: the same inodes."""
FRESH = "copies"
"""Value of `reference_files` where each launch of the reference has fresh copies of its files."""


class OtherFormat(ExperimentsError):
    """A file of a version that this program does not read."""


def check(path: Path, values: Mapping[str, Any]) -> None:
    """Refuse a file of a version that cannot be read.

    Raises:
        OtherFormat: it is newer, or older than OLDEST, or names no version.
    """
    version = values.get("format")
    if type(version) is not int:
        raise OtherFormat(f"{path} names no format, so it is no file of a campaign: name another")
    if version > FORMAT:
        raise OtherFormat(
            f"{path} is of format {version}, and this version of hbmcomm reads formats up to "
            f"{FORMAT}: take a newer one"
        )
    if version < OLDEST:
        raise OtherFormat(
            f"{path} is of format {version}, and this version of hbmcomm reads formats from "
            f"{OLDEST}: take the version that wrote it, or measure again"
        )
