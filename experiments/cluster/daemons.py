"""Whether the slurmd of each node of an allocation runs.

Without it MPI neither begins nor ends on the node, since PMI goes by it, and srun waits. Slurm
gives a slurmd up after SlurmdTimeout alone, which is 300 s unless a site says otherwise.
"""

import re
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from experiments.processes import executables
from experiments.processes.captured import captured

Address = tuple[str, int]

IDLE, LATER = 1.0, 4.0
"""Seconds without progress until the first look, and between two later ones at most: slurmd writes
a line into its log about each."""
REFUSING, AGAIN = 1.5, 0.5
"""Seconds for which a slurmd that is started again may refuse connections, and between looks."""
CONNECT = 1.0  # seconds until a connection is made; a node that does not answer is no refusal
ANSWER = 5.0  # seconds for Slurm to name the nodes
THREADS = 32


def addresses(nodes: str) -> dict[str, Address]:
    """Where the slurmd of each node listens; empty where Slurm does not say.

    Args:
        nodes: as Slurm lists them: "n[1-4,7]".
    """
    usual = re.search(r"SlurmdPort\s*=\s*(\d+)", _scontrol("config"))
    found = {}
    for line in _scontrol("node", nodes, "--oneliner").splitlines():
        values = dict(re.findall(r"\b(NodeName|NodeAddr|Port)=(\S+)", line))
        port = values.get("Port") or (usual[1] if usual else "")
        if port and "NodeAddr" in values:
            found[values["NodeName"]] = values["NodeAddr"], int(port)
    return found


def _scontrol(*words: str) -> str:
    program = executables.find("scontrol")
    if program is None:
        return ""
    try:
        return captured([program, "show", *words], timeout=ANSWER).stdout
    except subprocess.TimeoutExpired:
        return ""


@dataclass
class Daemons:
    """The slurmd of every node of a job.

    Attributes:
        nodes: as Slurm lists them.
        where: finds where they listen; called once, before the first look.
    """

    nodes: str
    where: Callable[[str], Mapping[str, Address]] = addresses
    _found: Mapping[str, Address] | None = None
    _due: float = IDLE
    _refusing: dict[str, float] = field(default_factory=dict)

    def gone(self, idle: float) -> str:
        """Which of them no longer run; "" where all do, or it is not time to look.

        Args:
            idle: seconds for which a launch has not got on.
        """
        if idle < IDLE:
            self._due, self._refusing = IDLE, {}
        if idle < self._due:
            return ""
        if self._found is None:
            self._found = self.where(self.nodes)
        with ThreadPoolExecutor(THREADS) as threads:
            refused = [*threads.map(_refuses, self._found.values())]
        now = time.monotonic()
        self._refusing = {
            name: self._refusing.get(name, now)
            for name, refuses in zip(self._found, refused, strict=True)
            if refuses
        }
        self._due = idle + (AGAIN if self._refusing else min(idle, LATER))
        gone = [name for name, since in self._refusing.items() if now - since >= REFUSING]
        return f"no slurmd runs on {', '.join(gone)}" if gone else ""


def _refuses(address: Address) -> bool:
    try:
        socket.create_connection(address, CONNECT).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False
