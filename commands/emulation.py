"""`vm` and `hosts`: emulated machines, and emulated hosts that stay until they are ended."""

import os
import shlex
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path

from invoke.exceptions import Exit

from commands.flags import check_choice, whole_number
from experiments.console import Stages, print_text
from experiments.emulation import description, guest_command, lasting
from experiments.emulation.host_plan import Plan
from experiments.environments.hosts import dealt
from experiments.environments.process import Process
from experiments.model.environment import MPIS, RATE
from experiments.model.errors import ExperimentsError
from experiments.provision import mpi_wheels, passthrough, system

DEFAULTS = {"rate": RATE, "mpi": MPIS[0], "name": "default"}
"""Defaults of the flags that are not empty by default."""


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


def hosts(action: str, flags: Mapping[str, str]) -> None:
    """Do what the flags ask for; with a command's exit code where that is not 0.

    Raises:
        ExperimentsError: also for a flag that the action does not take.
    """
    if action not in _ACTIONS:
        raise ExperimentsError(f"hosts {action!r} is none of {', '.join(_ACTIONS)}")
    takes = {name: list(signature(do).parameters) for name, do in _ACTIONS.items()}
    for flag, value in flags.items():
        if flag not in takes[action] and value != DEFAULTS.get(flag, ""):
            taking = next(name for name in takes if flag in takes[name])
            raise ExperimentsError(f"--{flag} is for `hosts {taking}`, not for `hosts {action}`")
    code = _ACTIONS[action](**{flag: flags[flag] for flag in takes[action]})
    if code:
        raise Exit(code=code)


def _up(count: str, rate: str, delay: str, name: str) -> None:
    made = lasting.up(Plan(whole_number("count", count, 1) or 2, rate, delay), name)
    print(lasting.to_table({name: made}), end="")


def _status() -> None:
    there = lasting.running()
    print(lasting.to_table(there) if there else "no hosts are up: ./inv hosts up 2\n", end="")


def _job(line: str, ranks: str, mpi: str, name: str) -> int:
    """An MPI job on all hosts, in this folder; ranks in a block on each, as evenly as can be."""
    check_choice("mpi", mpi, MPIS)
    if not line:
        raise ExperimentsError("what is to run? ./inv hosts job --line 'python program.py'")
    host_set = lasting.named(name)
    places = dealt(host_set.names, whole_number("ranks", ranks, 1) or len(host_set.names))
    prefix = mpi_wheels.ensure(mpi, print_text)
    program = ["env", f"--chdir={Path.cwd()}", *shlex.split(line)]
    return lasting.run(host_set.mpi(mpi, prefix, places, passthrough.cores(), program))


def _shell(host: str, name: str) -> int:
    host_set = lasting.named(name)
    words = host_set.enter(host or host_set.names[0], str(Path.cwd()))
    return lasting.run(Process((*words, os.environ.get("SHELL", "/bin/sh"))))


def _down(name: str) -> None:
    lasting.named(name).end()


_ACTIONS: Mapping[str, Callable[..., int | None]] = {
    "up": _up,
    "status": _status,
    "job": _job,
    "shell": _shell,
    "down": _down,
}
