"""`./inv vm`: a table of the machines, a shell in one, a command, a check."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Column, Table
from rich.text import Text

from experiments.console import Stages, printed
from experiments.emulation import boot, description, guest_disk
from experiments.emulation.boot import Guest
from experiments.emulation.differences import KINDS, Fact, bytes_of, differences, ranks_of
from experiments.emulation.machine import Description
from experiments.emulation.qemu_command import Disk
from experiments.environments.mpiexec import mpiexec
from experiments.environments.process import Process
from experiments.environments.vm import LAUNCHES, inside
from experiments.jobs.execute import execute
from experiments.model.environment import machine_names
from experiments.model.errors import ExperimentsError
from experiments.processes import scratch
from experiments.processes.files import last_lines
from experiments.provision import engine, image
from experiments.results import typed

FOUND = "found.json"
"""The file of a check's folder that rank 0 writes."""
LAST_LINES = 12  # of a failed check's output


def machines() -> str:
    """A table of the machines: name, and the real machine that it models."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for name in machine_names():
        machine = description.load(name)
        table.add_row(name, Text(f"{machine.title} (stands for {machine.stands_for})"))
    return printed(table, width=100)


def shell(name: str, mpi: str, base: str, stages: Stages) -> int:
    """Run a shell in a guest on this terminal; the machine's exit code."""
    machine = description.load(name)
    if not os.isatty(0):
        raise ExperimentsError(
            f"a shell in {machine.name} needs a terminal, and standard input is none; "
            f"to run commands there: ./inv vm --machine {name} --line 'nproc; numactl -H'"
        )
    disk = _disk(machine, mpi, base, stages)
    stages.say(f"{machine.name}: booting; leave it with exit or Ctrl-D, or end it with Ctrl-A X")
    return boot.shell(machine, disk)


def run(name: str, line: str, mpi: str, base: str, stages: Stages) -> int:
    """Run a shell line in a guest as its ordinary user, its output relayed; its exit code."""
    with _booted(name, mpi, base, stages) as booted, _folder() as folder:
        command = inside(booted.socket, folder, ["sh", "-c", line])
        return subprocess.run(command.argv, check=False).returncode


def check(name: str, mpi: str, base: str, stages: Stages) -> tuple[Fact, ...]:
    """How a machine and its pages of each kind differ from its description; empty: they do not.

    Raises:
        ExperimentsError: the check itself failed; with its last lines.
    """
    with _booted(name, mpi, base, stages) as booted, stages.stage("check"):
        return checked(booted, mpi)


def checked(booted: Guest, mpi: str = "openmpi", online: bool = False) -> tuple[Fact, ...]:
    """check() of a booted guest; `online` if its dax devices have been brought online."""
    machine = booted.description
    with _folder() as outer:
        folder, log = outer / "check", outer / "log"
        folder.mkdir()
        asked = (str(LAUNCHES / folder.name / FOUND), str(bytes_of(machine)), *KINDS)
        program = (f"{image.PREFIX}/bin/python", "-P", "-m", "experiments.emulation.check", *asked)
        argv, variables = mpiexec(mpi, image.PREFIX, ranks_of(machine), machine.cpus, program)
        words = Process(tuple(argv), variables).words()
        code = execute(inside(booted.socket, folder, words), log, None, lambda: None)
        file = folder / FOUND
        if code or not file.exists():
            raise ExperimentsError(
                f"the check in {machine.name} ended with code {code}; its last lines:\n"
                + "\n".join(f"    {line}" for line in last_lines(log, LAST_LINES))
            )
        try:  # a guest may write anything
            return differences(machine, typed.json_object(file), online)
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise ExperimentsError(
                f"the check in {machine.name} wrote what it never finds ({error!r}), so that the "
                "guest cannot be believed; start it again"
            ) from error


def to_table(differences: Sequence[Fact], width: int | None = None) -> str:
    """What was expected and what was seen, for a terminal."""
    columns = (Column(name, overflow="fold") for name in ("what", "expected", "seen"))
    table = Table(*columns, box=None, pad_edge=False)
    for fact in differences:
        table.add_row(*map(Text, fact))
    return printed(table, width=width)


@contextlib.contextmanager
def _booted(name: str, mpi: str, base: str, stages: Stages) -> Iterator[Guest]:
    machine = description.load(name)
    with boot.booted(machine, _disk(machine, mpi, base, stages), stages.say) as booted:
        yield booted


def _disk(machine: Description, mpi: str, base: str, stages: Stages) -> Disk:
    """The guest's disk; an engine runs only while it is made."""
    boot.refuse(machine, base)
    with engine.running() as client:
        with stages.stage("image"):
            made = image.ensure(client, base, mpi, stages.say)
        with stages.stage("guest's disk"):
            return guest_disk.ensure(client, made, stages.say)


def _folder() -> contextlib.AbstractContextManager[Path]:
    """A folder to exchange files with a guest; that of a killed command goes with the next one."""
    return scratch.folder(Path(tempfile.gettempdir()), "hbmcomm-vm-")
