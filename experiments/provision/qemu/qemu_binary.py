"""The installed QEMU: its path, its version, and the command that installs it."""

from experiments.emulation import qemu_command
from experiments.model.errors import Missing
from experiments.processes import executables
from experiments.processes.captured import captured
from experiments.provision.packages import system


def program() -> str:
    """QEMU's path.

    Raises:
        Missing: naming the command that installs it.
    """
    found = executables.find(qemu_command.PROGRAM)
    if found is None:
        raise Missing(
            f"emulated machines need {qemu_command.PROGRAM}, which is not installed; "
            f"sudo {system.remedy((system.QEMU,))}"
        )
    return found


def version() -> str:
    """The first line of QEMU's version text.

    Raises:
        Missing: it is not installed, or does not start; names the command that mends it.
    """
    command = [program(), "--version"]
    try:
        done = captured(command)
        errors, lines = done.stderr, done.stdout.splitlines()
    except OSError as error:
        errors, lines = str(error), []
    if not lines:
        raise Missing(
            f"{command[0]} does not start: {errors.strip() or 'it prints nothing'}; "
            f"sudo {system.remedy((system.QEMU,))} --reinstall"
        )
    return lines[0]
