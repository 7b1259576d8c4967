"""Emulated hosts that are up: ways into them, their links, their processes.

`up()` makes some for the time of a block. Knows nothing of campaigns and of shell commands.
"""

import contextlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.emulation import keepers, relay
from experiments.emulation.host_plan import (
    CONTROLLER,
    HOME,
    LINK,
    Plan,
    delaying,
    number,
    seconds,
    shaping,
)
from experiments.emulation.keepers import HostsRefused, Keeper
from experiments.environments import enter
from experiments.environments.hosts import WaysIn, dealt, job
from experiments.environments.process import Process, entering
from experiments.machine.facts import Traffic, traffic_by_device
from experiments.model.environment import RATE
from experiments.model.errors import ExperimentsError
from experiments.model.launch import SPREAD
from experiments.model.quantities import rate_text
from experiments.processes import executables, tracking
from experiments.processes.executables import captured

_NUMBERS = itertools.count()
END_PATIENCE = 10.0  # seconds


class Hosts:
    """Hosts on one switch. All of them share this machine's files, CPUs and memory.

    A host has a network, a name, System V IPC, a /dev/shm and PIDs of its own. Its TMPDIR is its
    /dev/shm. The controller is the switch as a host: mpiexec runs there.

    Attributes:
        name: of the set, on this machine.
        names: n1, n2 ... They resolve on each host and on the controller, which is ctl.
    """

    def __init__(self, name: str, by_host: Mapping[str, Keeper]) -> None:
        self.name, self._keepers = name, dict(by_host)
        self.names = sorted(by_host.keys() - {CONTROLLER}, key=number)

    def enter(self, name: str, folder: str = "/tmp") -> list[str]:
        """The words before a command that run it in a folder on a host or on the controller."""
        return entering(self._keeper(name).pid, folder)

    def packed(self, *counts: int) -> list[str]:
        """The host of each rank, for mpi(): so many ranks on n1, then so many on n2 ...

        One count is that of every host.
        """
        ranks = counts * len(self.names) if len(counts) == 1 else counts
        return [name for name, count in zip(self.names, ranks, strict=True) for _ in range(count)]

    def in_turn(self, ranks: int) -> list[str]:
        """The host of each rank, for mpi(): n1, n2 ... and again from n1."""
        return dealt(self.names, ranks, SPREAD)

    @property
    def ways(self) -> WaysIn:
        """How a launcher enters them."""
        places = {
            name: f"{enter.NAMESPACES}{keeper.inner}" for name, keeper in self._keepers.items()
        }
        return WaysIn(tuple(self.names), tuple(self.enter(CONTROLLER)), places, HOME)

    def mpi(
        self, flavour: str, prefix: Path, ranks: Sequence[str], cores: int, program: Sequence[str]
    ) -> Process:
        """The command of an MPI job; ranks are their hosts, as packed() or in_turn() gives them."""
        return job(flavour, prefix, ranks, cores, program, self.ways)

    @property
    def adopters(self) -> list[int]:
        """The process of each host that becomes the parent of what others leave there."""
        return [self._keeper(name).pid for name in self.names]

    def traffic(self, name: str) -> Traffic:
        """What the link of a host has carried."""
        counters = Path(f"/proc/{self._keeper(CONTROLLER).pid}/net/dev")
        if (end := traffic_by_device(counters).get(name)) is None:  # the switch's end of the link
            raise HostsRefused(f"the switch of {self.name} has no link to {name}; is that host up?")
        return Traffic(sent=end.received, received=end.sent)

    def rate(self, name: str) -> str:
        """The rate of a host's link as tc(8) writes it; "cut" where nothing passes."""
        device = json.loads(self._run(CONTROLLER, [f"ip -json link show {name}"]))[0]
        if "UP" not in device["flags"]:
            return "cut"
        return rate_text(self._qdiscs(name)["tbf"]["rate"] * 8)

    def delay(self, name: str) -> float:
        """Seconds that a host's link holds each packet, in each direction."""
        if netem := self._qdiscs(name).get("netem"):
            return float(netem["delay"]["delay"])
        for pid in self._inside(name):
            if tracking.name(pid) == relay.NAME and tracking.is_own(pid):
                return float(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2])
        return 0.0

    def cut(self, name: str) -> None:
        """Pull the plug of a host's link: nothing passes, and neither end is closed."""
        self._run(CONTROLLER, [f"ip link set {name} down"])

    def mend(self, name: str) -> None:
        """Put the plug of a host's link in again."""
        self._run(CONTROLLER, [f"ip link set {name} up"])

    def slow(self, name: str, rate: str) -> None:
        """Change the rate of a host's link in both directions: 10mbit, as tc(8) writes it."""
        self._run(CONTROLLER, [shaping(name, rate)])
        self._run(name, [shaping(LINK, rate)])

    def processes(self, name: str) -> set[int]:
        """PIDs, as this process sees them, of all that runs on a host; none after its end."""
        return {pid for pid in self._inside(name) if tracking.name(pid) != relay.NAME}

    def _inside(self, name: str) -> set[int]:
        """PIDs of all in the PID namespace of a host but its keeper."""
        keeper = self._keeper(name)
        if not tracking.lives(keeper.process):
            return set()
        return tracking.sharing_pids(keeper.pid) - {keeper.pid}

    def kill(self, name: str) -> None:
        """End a host as a loss of power does: all its processes, its memory, its link."""
        keeper = self._keeper(name)  # ends once the last process of its namespace has ended
        tracking.signal_and_wait({keeper.process}, signal.SIGKILL, END_PATIENCE)
        if tracking.lives(keeper.process):
            raise ExperimentsError(f"process {keeper.pid} does not end; see what it waits for")

    def end(self) -> None:
        """End all hosts, whoever made them; nothing of them is left then."""
        self.kill(CONTROLLER)
        keepers.forget(self.name)

    def wire(self, plan: Plan) -> None:
        """Link the hosts to the switch, as planned."""
        pids = {name: keeper.pid for name, keeper in self._keepers.items()}
        relayed = bool(plan.delay) and not self._has_netem()
        if relayed:
            for name in self.names:
                self._relay(name, plan.delay)
        self._run(CONTROLLER, plan.of_switch(pids, relayed))
        for name in self.names:
            self._run(name, plan.of_host(name))
            if plan.delay and not relayed:
                self._run(CONTROLLER, [delaying(name, plan.delay)])
                self._run(name, [delaying(LINK, plan.delay)])

    def _has_netem(self) -> bool:
        """Whether the kernel can delay packets itself; found by trying."""
        try:
            self._run(CONTROLLER, ["tc qdisc add dev lo root netem delay 1ms"])
        except HostsRefused:
            return False
        self._run(CONTROLLER, ["tc qdisc del dev lo root"])
        return True

    def _relay(self, name: str, delay: str) -> None:
        """Make a host's link with a process that holds what passes."""
        ends = (str(self._keeper(host).pid) for host in (CONTROLLER, name))
        words = [sys.executable, relay.__file__, *ends, name, LINK, str(seconds(delay))]
        done = captured(words)
        if done.returncode:
            raise HostsRefused(
                f"links have no delay here: the kernel has no netem, and /dev/net/tun makes no tap "
                f"device: {done.stderr.strip().splitlines()[-1]}"
            )

    def _qdiscs(self, name: str) -> dict[str, Any]:
        """The options of what shapes the switch's end of a link, by kind."""
        qdiscs = json.loads(self._run(CONTROLLER, [f"tc -json qdisc show dev {name}"]))
        return {qdisc["kind"]: qdisc["options"] for qdisc in qdiscs}

    def _keeper(self, name: str) -> Keeper:
        try:
            return self._keepers[name]
        except KeyError:
            known = ", ".join((*self.names, CONTROLLER))
            raise HostsRefused(f"no host {name!r} in {self.name}; there are {known}") from None

    def _run(self, name: str, lines: Sequence[str]) -> str:
        """What shell lines print in the network of a host, with this machine's files."""
        done = captured(
            ["nsenter", f"--target={self._keeper(name).pid}", "--net", "sh", "-ex"],
            env=os.environ | {"PATH": executables.path()},
            input="\n".join(lines),
        )
        if done.returncode:
            error = " / ".join(done.stderr.splitlines()[-2:])  # the line and its error
            raise HostsRefused(f"the network of {name} does not do as asked: {error}")
        return done.stdout


@contextlib.contextmanager
def up(count: int, rate: str = RATE, delay: str = "") -> Iterator[Hosts]:
    """Emulated hosts, as Plan has them, for the block. Nothing of them outlives this process.

    Raises:
        HostsRefused: this process is not root's, or the system refuses.
        SpecError: count, rate or delay cannot be.
    """
    plan = Plan(count, rate, delay)
    name = f"{tracking.identity(os.getpid())}-{next(_NUMBERS)}"
    hosts, process = start(plan, name)
    try:
        yield hosts
    finally:
        keepers.end(name, process)


def start(plan: Plan, name: str) -> tuple[Hosts, keepers.Process]:
    """Hosts that are up, and the process that ends them when it ends: keepers.end, keepers.stay.

    Raises:
        HostsRefused: as up().
    """
    keepers.refuse()
    process, made = keepers.start(plan, name)
    try:
        hosts = Hosts(name, made)
        hosts.wire(plan)
    except BaseException:
        keepers.end(name, process)
        raise
    return hosts, process


def hosts_to_be(plan: Plan) -> WaysIn:
    """The ways into hosts that are not up: names take the place of their processes."""
    every = {name: f"{enter.NAMESPACES}{name}" for name in (*plan.names, CONTROLLER)}
    return WaysIn(plan.names, tuple(entering(CONTROLLER)), every, HOME)
