"""Emulated hosts: ranks that one mpiexec starts on all of them, over the switch. Pure.

What the hosts are and how they come up, experiments/emulation/emulated_hosts.py knows; here they
are names and ways in.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.environments import enter
from experiments.environments.mpiexec import across, mpiexec, of_a_host
from experiments.environments.process import FOLDER, MODULE, Process
from experiments.environments.runtime import IN_SIGHT, Contained, as_nobody
from experiments.model.launch import PACKED, SPREAD, Launch


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
        prefix: the environment that holds the MPI; hosts have this machine's files.
        cores: CPUs of this machine, which all hosts share.
        ways: into the hosts.
        contained: what the ranks run in; None for the hosts' own files.
        variables: for the ranks, beside what the MPI needs.
    """

    prefix: Path
    cores: int
    ways: WaysIn
    contained: Contained | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json."""
        ranks = dealt(self.ways.names, launch.ranks, launch.binding)
        program, more = self._program(launch, folder)
        started = job(launch.mpi, self.prefix, ranks, self.cores, program, self.ways)
        variables = {**started.environment, **self.variables, **more, **self._of_nobody(folder)}
        return replace(started, environment=variables)

    def _of_nobody(self, folder: Path) -> Mapping[str, str]:
        """Variables by which the MPI's daemons on hosts, and so ranks in containers, are nobody.

        A daemon shares files with ranks of its own user alone.
        """
        it = self.contained
        if it is None or it.user is None:
            return {}
        first = as_nobody(*it.user, tree=it.image, launch=folder, prefix=self.prefix)
        first += ["env", f"HOME={IN_SIGHT}/launch"]
        return enter.variables(self.ways.places, {self.prefix: IN_SIGHT / "prefix"}, first)

    def _program(self, launch: Launch, folder: Path) -> tuple[list[str], Mapping[str, str]]:
        """What each rank runs, and further variables of the launcher."""
        it = self.contained
        if it is None:
            return [str(self.prefix / "bin/python"), *MODULE, str(folder)], {}
        needed = of_ranks(launch.mpi, it.prefix, launch.ranks, self.cores)
        named = f"{folder.parents[1].name}-{launch.name}"
        per_host = launch.ranks // len(self.ways.names)
        needed |= self.variables
        if it.user:
            it, folder = replace(it, image=IN_SIGHT / "tree"), IN_SIGHT / "launch"
        _, words, more = it.words(named, per_host, folder, needed)
        return [*words, str(it.prefix / "bin/python"), *MODULE, FOLDER], more


def dealt(names: Sequence[str], ranks: int, binding: str = PACKED) -> list[str]:
    """The host of each rank.

    Args:
        binding: "packed": ranks in a block on each host, as evenly as can be; "spread": one on
            each host in turn.
    """
    if binding == SPREAD:
        return list(itertools.islice(itertools.cycle(names), ranks))
    per_host, more = divmod(ranks, len(names))
    return [name for number, name in enumerate(names) for _ in range(per_host + (number < more))]


def job(
    flavour: str,
    prefix: Path,
    ranks: Sequence[str],
    cores: int,
    program: Sequence[str],
    ways: WaysIn,
) -> Process:
    """The command that starts an MPI job on hosts.

    Args:
        flavour: one of MPIS.
        prefix: the environment that holds it.
        ranks: the host of each.
        cores: CPUs of this machine; more ranks yield while they wait.
    """
    argv, variables = across(flavour, prefix, ranks, ways.home, cores, program, enter.LAUNCHER)
    needed = of_ranks(flavour, prefix, len(ranks), cores)
    entered = enter.variables(ways.places, {})
    return Process((*ways.controller, *argv), needed | variables | entered)


def of_ranks(flavour: str, prefix: Path, ranks: int, cores: int) -> dict[str, str]:
    """The variables that ranks of an MPI need on hosts.

    Args:
        prefix: the environment that holds it where they run.
        ranks: on all hosts.
        cores: that all hosts have together.
    """
    _, environment = mpiexec(flavour, prefix, ranks, cores, ())
    if flavour == "impi":
        return of_a_host(environment) | {"I_MPI_FABRICS": "shm:ofi", "I_MPI_OFI_PROVIDER": "tcp"}
    return of_a_host(environment)
