"""`./inv hosts`: sets of hosts that outlive the command that makes them. Each has a name.

Which sets are up, and as what, is read from their processes and links; a file holds no more of a
set than the process that it began with.
"""

import os
import re
import subprocess
from collections.abc import Mapping

from rich.table import Column, Table

from experiments.console import printed
from experiments.emulation import keepers
from experiments.emulation.emulated_hosts import Hosts, start
from experiments.emulation.host_plan import Plan, address
from experiments.emulation.keepers import HostsRefused
from experiments.environments.mpiexec import outside_jobs
from experiments.environments.process import Process
from experiments.model.errors import SpecError
from experiments.processes import tracking

NAME = re.compile(r"[a-z][a-z0-9-]*")  # sets that end with their process begin with its number


def up(plan: Plan, name: str) -> Hosts:
    """Make a set of hosts, which stays until down() or until the machine ends.

    Raises:
        HostsRefused: a set of that name is up, or the system refuses.
        SpecError: it cannot be a name.
    """
    if not NAME.fullmatch(name):
        raise SpecError(f"--name {name!r} cannot name hosts; write lower-case letters, digits, -")
    if name in running():
        raise HostsRefused(
            f"hosts are up as {name} already; end them (./inv hosts down --name {name}), or name "
            "others with --name"
        )
    hosts, process = start(plan, name)
    keepers.stay(process)
    return hosts


def running() -> dict[str, Hosts]:
    """The sets that are up, by their names."""
    return {
        name: Hosts(name, by_host)
        for name, by_host in sorted(keepers.all_found().items())
        if NAME.fullmatch(name)
    }


def named(name: str) -> Hosts:
    """The set of a name.

    Raises:
        HostsRefused: there is none.
    """
    keepers.refuse()
    sets = running()
    if name not in sets:
        others = f"up are: {', '.join(sets)}; choose with --name" if sets else "./inv hosts up 2"
        raise HostsRefused(f"no hosts are up as {name}: {others}")
    return sets[name]


def to_table(sets: Mapping[str, Hosts]) -> str:
    """What is up: hosts, links, bytes and processes."""
    counts = (Column(name, justify="right") for name in ("sent", "received", "processes"))
    table = Table("set", "host", "address", "link", "delay", *counts, box=None, pad_edge=False)
    for name, hosts in sets.items():
        for host in hosts.names:
            traffic = hosts.traffic(host)
            numbers = [f"{count:,}" for count in (*traffic, len(hosts.processes(host)))]
            delay = hosts.delay(host)
            held = f"{1e3 * delay:g}ms" if delay else "-"
            table.add_row(name, host, address(host), hosts.rate(host), held, *numbers)
    return printed(table, width=100)


def run(command: Process) -> int:
    """Run a command on this terminal; its exit code. Nothing of it stays."""
    mark = tracking.new_mark()
    variables = outside_jobs(os.environ) | dict(command.environment) | {tracking.MARK: mark}
    try:
        return subprocess.run(command.argv, env=variables, check=False).returncode
    finally:
        tracking.end_marked(mark)
