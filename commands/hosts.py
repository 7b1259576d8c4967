"""`hosts`: emulated hosts that stay until they are ended."""

import os
import shlex
from pathlib import Path

from invoke.exceptions import Exit

from commands.flags import check_choice, whole_number
from experiments.emulation.hosts import lasting
from experiments.emulation.hosts.plan import Plan
from experiments.environments.cluster.hosts import dealt
from experiments.environments.process import Process
from experiments.model.environment import MPIS
from experiments.model.errors import ExperimentsError
from experiments.provision import passthrough
from experiments.provision.wheels import mpi as mpi_provision


def hosts(
    action: str,
    count: str,
    rate: str,
    delay: str,
    name: str,
    host: str,
    line: str,
    ranks: str,
    mpi: str,
) -> None:
    """Do what the flags ask for; with a command's exit code where that is not 0."""
    if action == "up":
        made = lasting.up(Plan(whole_number("count", count, 1) or 2, rate, delay), name)
        print(lasting.to_table({name: made}), end="")
    elif action == "status":
        there = lasting.running()
        print(lasting.to_table(there) if there else "no hosts are up: ./inv hosts up 2\n", end="")
    elif action == "down":
        lasting.named(name).end()
    elif action == "shell":
        found = lasting.named(name)
        words = found.enter(host or found.names[0], str(Path.cwd()))
        _end(lasting.run(Process((*words, os.environ.get("SHELL", "/bin/sh")))))
    elif action == "job":
        _end(_job(name, line, ranks, mpi))
    else:
        raise ExperimentsError(f"hosts {action!r} is none of up, status, job, shell, down")


def _job(name: str, line: str, ranks: str, mpi: str) -> int:
    """An MPI job on all hosts, in this folder; ranks in a block on each, as evenly as can be."""
    check_choice("mpi", mpi, MPIS)
    if not line:
        raise ExperimentsError("what is to run? ./inv hosts job --line 'python program.py'")
    found = lasting.named(name)
    places = dealt(found.names, whole_number("ranks", ranks, 1) or len(found.names))
    prefix = mpi_provision.ensure(mpi, print)
    program = ["env", f"--chdir={Path.cwd()}", *shlex.split(line)]
    return lasting.run(found.mpi(mpi, prefix, places, passthrough.cores(), program))


def _end(code: int) -> None:
    if code:
        raise Exit(code=code)
