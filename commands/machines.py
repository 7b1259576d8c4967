"""`vm`: emulated machines. A list, a shell, one command or a check."""

from invoke.exceptions import Exit

from commands.flags import check_choice
from experiments.console import Stages, print_text
from experiments.emulation import description, guest_command
from experiments.model.environment import MPIS
from experiments.model.errors import ExperimentsError
from experiments.provision import system


def vm(machine: str, check: bool, line: str, mpi: str, base: str, yes: bool) -> None:
    """Do what the flags ask for; with a guest's exit code where that is not 0."""
    check_choice("mpi", mpi, MPIS)
    if check and line:
        raise ExperimentsError("--check and --line are two things: leave out one of them")
    if not machine:
        if check or line:
            raise ExperimentsError(
                "--check and --line need --machine; ./inv vm lists what there is"
            )
        print(guest_command.machines(), end="")
        return
    described = description.load(machine)  # before the installation, which takes minutes
    stages = Stages()
    lacking = system.ensure(stages.say, yes, (*system.PACKAGES, *system.EMULATION))
    if lacking:
        stages.say(lacking)
    if check:
        differences = guest_command.check(machine, mpi, base, stages)
        if differences:
            print(guest_command.to_table(differences), end="")
            raise ExperimentsError(f"{described.name} is not what its description says")
        print_text(f"{described.name} is what its description says")
        return
    code = (
        guest_command.run(machine, line, mpi, base, stages)
        if line
        else guest_command.shell(machine, mpi, base, stages)
    )
    if code:
        raise Exit(code=code)
