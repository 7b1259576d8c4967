"""The processes that keep the namespaces of emulated hosts: started, recorded, found, ended.

The switch's keeper is the first process of a PID namespace, and each host has one below that: when
the keeper ends, for whatever reason, the kernel ends all that runs on any host. Namespaces live as
long as processes in them, so nothing can be left. Any process can call itself a host: those count
alone that descend from a process whose start is recorded, in a folder where only root writes.
"""

import contextlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from experiments.emulation.host_plan import CONTROLLER, Plan
from experiments.environments.process import NAMESPACES
from experiments.machine.facts import status
from experiments.model.errors import Missing
from experiments.processes import executables, folder_lock, ownership, tracking
from experiments.processes.files import whole_file

VARIABLE = "HBMCOMM_HOST"
"""Variable of a keeper: SET/HOST."""
RECORDS = Path("/run/hbmcomm-hosts")
"""A file for each set, with the identity of the process that all its keepers descend from."""
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
    kinds = [f"--{kind}" for kind in NAMESPACES]
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
    try:
        _record(name, process)
        return process, _ready(plan, name, process)
    except BaseException:
        end(name, process)
        raise


def _ready(plan: Plan, name: str, process: Process) -> dict[str, Keeper]:
    """The keepers of a set, once all are there."""
    assert process.stdout
    awaited = set(plan.names)
    with process.stdout as output:
        while awaited:
            line = output.readline().strip()
            if line not in awaited:
                raise HostsRefused(f"the namespaces of emulated hosts cannot be made here: {line}")
            awaited.remove(line)
    deadline = time.monotonic() + PATIENCE
    while (made := all_found().get(name, {})).keys() != {CONTROLLER, *plan.names}:
        if time.monotonic() > deadline:  # the environment of a process that is at exec reads empty
            raise HostsRefused(f"the hosts of {name} are not in /proc; see that it shows processes")
    return made  # another look may miss one that is at exec


def stay(process: Process) -> None:
    """Let a set outlive this process."""
    assert process.stdin
    with process.stdin as orders:
        orders.write("stay\n")


def end(name: str, process: Process) -> None:
    """End a set that this process started; nothing of it is left then."""
    assert process.stdin
    process.stdin.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()  # --kill-child: the switch ends with it
        process.wait()
    forget(name)


def forget(name: str) -> None:
    """Remove the record of a set that has ended."""
    (RECORDS / name).unlink(missing_ok=True)


def all_found() -> dict[str, dict[str, Keeper]]:
    """The keepers of all sets on this machine, by the sets' and the hosts' names."""
    sets: dict[str, dict[str, Keeper]] = {}
    begun = _recorded()
    for process, value in tracking.carrying(VARIABLE).items() if begun else ():
        name, _, host = value.rpartition("/")
        pid = tracking.pid_of(process)
        # its PIDs, from this PID namespace to its own; none of one that has ended
        numbers = status(Path(f"/proc/{pid}/status")).get("NSpid", "").split()
        if numbers[-1:] != ["1"]:  # the parent of a keeper carries the variable as well
            continue
        if name in begun and tracking.is_own(pid) and _descends(pid, begun[name]):
            sets.setdefault(name, {})[host] = Keeper(process, int(numbers[1]))
    return sets


def _record(name: str, process: Process) -> None:
    """Record which process a set begins with."""
    try:
        RECORDS.mkdir(0o700, exist_ok=True)
        with whole_file(RECORDS / name) as file:
            file.write(f"{folder_lock.pid_namespace()}\n{tracking.identity(process.pid)}".encode())
    except OSError as error:
        raise HostsRefused(
            f"emulated hosts are recorded in {RECORDS}, which cannot be written "
            f"({error.strerror}): see that root can write into {RECORDS.parent}"
        ) from error


def _recorded() -> dict[str, str]:
    """The identity of the process that each set began with; the record of one that is gone goes."""
    living: dict[str, str] = {}
    if not RECORDS.is_dir() or not ownership.is_own(RECORDS):
        return living
    for path in RECORDS.glob("[!.]*"):
        with contextlib.suppress(FileNotFoundError):  # the set has just ended
            place, _, process = path.read_text(encoding="ascii").partition("\n")
            if place == folder_lock.pid_namespace() and tracking.lives(process):
                living[path.name] = process
            elif place == folder_lock.pid_namespace():
                path.unlink()
    return living


def _descends(pid: int, ancestor: str) -> bool:
    """Whether a process descends from the process of an identity."""
    while pid and pid != tracking.pid_of(ancestor):
        pid = tracking.parent_of(pid)
    return bool(pid) and tracking.lives(ancestor)
