"""QEMU as it is installed here: where it lies, what it says of itself, what installs it."""

import subprocess

from experiments.emulation import qemu_command
from experiments.model.errors import ExperimentsError
from experiments.processes import executables
from experiments.provision.packages import system


class QemuMissing(ExperimentsError):
    """No QEMU is installed, or it does not start."""


def program() -> str:
    """QEMU's path.

    Raises:
        QemuMissing: naming the command that installs it.
    """
    found = executables.find(qemu_command.PROGRAM)
    if found is None:
        raise QemuMissing(
            f"emulated machines need {qemu_command.PROGRAM}, which is not installed; "
            f"sudo {system.remedy((system.QEMU,))}"
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
            f"sudo {system.remedy((system.QEMU,))} --reinstall"
        )
    return lines[0]
