"""Emulated hosts: ranks that one mpiexec starts on all of them, over the switch. Pure.

What the hosts are and how they come up, experiments/emulation/hosts knows; here they are names and
ways in.
"""

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.environments import enter
from experiments.environments.host import PROGRAM
from experiments.environments.mpi.mpiexec import across, mpiexec, of_a_host
from experiments.environments.process import Process
from experiments.model.experiment import PACKED, SPREAD
from experiments.model.launch import Launch


@dataclass(frozen=True)
class WaysIn:
    """How a set of hosts is entered.

    Attributes:
        names: of the hosts.
        controller: the words before a command that run it on the switch.
        places: by host, the switch among them, as enter.py takes it.
        home: the switch's address as hosts reach it, and the interface that has it.
    """

    names: tuple[str, ...]
    controller: tuple[str, ...]
    places: Mapping[str, str]
    home: tuple[str, str]


@dataclass(frozen=True)
class OnHosts:
    """Launches over emulated hosts.

    Attributes:
        flavour: the MPI, one of MPIS.
        prefix: the environment that holds it; hosts have this machine's files.
        cores: CPUs of this machine, which all hosts share.
        ways: into the hosts.
        variables: for the ranks, beside what the MPI needs.
        python: the interpreter on this machine that holds this project.
    """

    flavour: str
    prefix: Path
    cores: int
    ways: WaysIn
    variables: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json."""
        ranks = dealt(self.ways.names, launch.ranks, launch.binding)
        program = (str(self.prefix / "bin/python"), "-m", PROGRAM, str(folder))
        found = job(self.flavour, self.prefix, ranks, self.cores, program, self.ways, self.python)
        return replace(found, environment={**found.environment, **self.variables})


def dealt(names: Sequence[str], ranks: int, binding: str = PACKED) -> list[str]:
    """The host of each rank.

    Args:
        binding: "packed": ranks in a block on each host, as evenly as can be; "spread": one on
            each host in turn.
    """
    if binding == SPREAD:
        return list(itertools.islice(itertools.cycle(names), ranks))
    each, more = divmod(ranks, len(names))
    return [name for number, name in enumerate(names) for _ in range(each + (number < more))]


def job(
    flavour: str,
    prefix: Path,
    ranks: Sequence[str],
    cores: int,
    program: Sequence[str],
    ways: WaysIn,
    python: str = sys.executable,
) -> Process:
    """The command that starts an MPI job on hosts.

    Args:
        flavour: one of MPIS.
        prefix: the environment that holds it.
        ranks: the host of each.
        cores: CPUs of this machine; more ranks yield while they wait.
        python: the interpreter that holds this project.
    """
    argv, variables = across(flavour, prefix, ranks, ways.home, cores, program, enter.LAUNCHER)
    _, of_ranks = mpiexec(flavour, prefix, len(ranks), cores, program)
    if flavour == "impi":
        variables |= {"I_MPI_FABRICS": "shm:ofi", "I_MPI_OFI_PROVIDER": "tcp"}
    entered = enter.variables(ways.places, {}, python)
    return Process((*ways.controller, *argv), of_a_host(of_ranks) | variables | entered)
