"""The processes that keep the namespaces of emulated hosts: started, found, ended.

The switch's keeper is the first process of a PID namespace, and each host has one below that: when
the keeper ends, for whatever reason, the kernel ends all that runs on any host. Namespaces live as
long as processes in them, so nothing can be left.
"""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from experiments.emulation.hosts.plan import CONTROLLER, Plan
from experiments.environments.namespaces import KINDS
from experiments.model.errors import Missing
from experiments.processes import executables, tracking
from experiments.programs.machine.facts import status

VARIABLE = "HBMCOMM_HOST"
"""Variable of a keeper: SET/HOST."""
SWITCH = Path(__file__).with_name("switch.sh")
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "unshare": "util-linux"}
"""What it takes, and Debian's packages."""
PATIENCE = 10.0  # seconds

Process = subprocess.Popen[str]


class HostsRefused(Missing):
    """This machine does not make emulated hosts; the text says why."""


@dataclass(frozen=True)
class Keeper:
    """The identity of what keeps the namespaces of a host or the switch; its PID on the switch."""

    process: str
    inner: int

    @property
    def pid(self) -> int:
        """Its PID here."""
        return tracking.pid_of(self.process)


def refuse() -> None:
    """Raise where this process cannot make hosts."""
    if os.geteuid() != 0:
        raise HostsRefused(
            "emulated hosts are network namespaces, which root alone makes, and this is user "
            f"{os.geteuid()}: run the command as root"
        )
    lacking = {package for name, package in PROGRAMS.items() if not executables.find(name)}
    if lacking:
        raise HostsRefused(
            f"emulated hosts need {' and '.join(PROGRAMS)}, and not all are installed: "
            f"apt install {' '.join(sorted(lacking))}"
        )


def start(plan: Plan, name: str) -> tuple[Process, dict[str, Keeper]]:
    """Start the keepers of a set, which end with this process; returns them when they are ready.

    Raises:
        HostsRefused: with what the system says.
    """
    kinds = [f"--{kind}" for kind in KINDS]
    process = subprocess.Popen(
        [
            *("unshare", "--fork", "--kill-child", "--mount-proc", *kinds),
            *("sh", str(SWITCH), name, plan.resolution(), *plan.names),
        ],
        cwd="/",
        env={"PATH": executables.path(), VARIABLE: f"{name}/{CONTROLLER}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    assert process.stdout
    awaited = set(plan.names)
    with process.stdout as output:
        while awaited:
            line = output.readline().strip()
            if line not in awaited:
                end(process)
                raise HostsRefused(f"the namespaces of emulated hosts cannot be made here: {line}")
            awaited.remove(line)
    deadline = time.monotonic() + PATIENCE
    while (made := all_found().get(name, {})).keys() != {CONTROLLER, *plan.names}:
        if time.monotonic() > deadline:  # the environment of a process that is at exec reads empty
            end(process)
            raise HostsRefused(f"the hosts of {name} are not in /proc; see that it shows processes")
    return process, made  # another look may miss one that is at exec


def stay(process: Process) -> None:
    """Let a set outlive this process."""
    assert process.stdin
    with process.stdin as orders:
        orders.write("stay\n")


def end(process: Process) -> None:
    """End a set that this process started; nothing of it is left then."""
    assert process.stdin
    process.stdin.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()  # --kill-child: the switch ends with it
        process.wait()


def all_found() -> dict[str, dict[str, Keeper]]:
    """The keepers of all sets on this machine, by the sets' and the hosts' names."""
    sets: dict[str, dict[str, Keeper]] = {}
    for process, value in tracking.carrying(VARIABLE).items():
        name, _, host = value.rpartition("/")
        # its PIDs, from this PID namespace to its own; none of one that has ended
        numbers = status(Path(f"/proc/{tracking.pid_of(process)}/status")).get("NSpid", "").split()
        if numbers[-1:] == ["1"]:  # the parent of a keeper carries the variable as well
            sets.setdefault(name, {})[host] = Keeper(process, int(numbers[1]))
    return sets
