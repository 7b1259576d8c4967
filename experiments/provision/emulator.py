"""QEMU as it is installed here: where it lies, what it says of itself, what installs it."""

import subprocess

from experiments.emulated import qemu
from experiments.errors import ExperimentsError
from experiments.provision import packages, programs


class QemuMissing(ExperimentsError):
    """No QEMU is installed, or it does not start."""


def program() -> str:
    """QEMU's path.

    Raises:
        QemuMissing: naming the command that installs it.
    """
    found = programs.find(qemu.PROGRAM)
    if found is None:
        raise QemuMissing(
            f"emulated machines need {qemu.PROGRAM}, which is not installed; "
            f"sudo {packages.remedy((packages.QEMU,))}"
        )
    return found


def version() -> str:
    """What QEMU says of itself in its first line.

    Raises:
        QemuMissing: as program(), or with its last words where it does not start.
    """
    asked = [program(), "--version"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        said, lines = done.stderr, done.stdout.splitlines()
    except OSError as error:
        said, lines = str(error), []
    if not lines:
        raise QemuMissing(
            f"{asked[0]} does not start: {said.strip() or 'it says nothing'}; "
            f"sudo {packages.remedy((packages.QEMU,))} --reinstall"
        )
    return lines[0]
