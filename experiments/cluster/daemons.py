"""Whether the slurmd of each node of an allocation answers.

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
from experiments.processes.executables import captured

Address = tuple[str, int]

IDLE, LATER = 1.0, 2.0
"""Seconds without progress until the first look, and between two later ones at most: slurmd writes
a line into its log about each."""
REFUSING, SILENT = 1.5, 4.0
"""Seconds for which a slurmd that is started again may refuse connections, and for which a node
that has answered may answer nothing."""
AGAIN = 0.5  # seconds between looks at nodes that refuse or are silent
CONNECT = 1.0  # seconds until a connection is made
ANSWER = 5.0  # seconds for Slurm to name the nodes
THREADS = 32


def addresses(nodes: str) -> dict[str, Address]:
    """Where the slurmd of each node listens; empty where Slurm does not say.

    Args:
        nodes: as Slurm lists them: "n[1-4,7]".
    """
    usual = re.search(r"SlurmdPort\s*=\s*(\d+)", _scontrol("config"))
    by_node = {}
    for line in _scontrol("node", nodes, "--oneliner").splitlines():
        values = dict(re.findall(r"\b(NodeName|NodeAddr|Port)=(\S+)", line))
        port = values.get("Port") or (usual[1] if usual else "")
        if port and "NodeAddr" in values:
            by_node[values["NodeName"]] = values["NodeAddr"], int(port)
    return by_node


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
    _due: float = 0.0  # at the first call, to see which nodes answer at all
    _reachable: set[str] = field(default_factory=set)
    _deadlines: dict[str, float] = field(default_factory=dict)  # of those that do not answer

    def gone(self, idle: float) -> str:
        """Which of them no longer answer; "" where all do, or it is not time to look.

        Args:
            idle: seconds for which a launch has not got on.
        """
        if idle < IDLE:
            self._deadlines = {}
            self._due = min(self._due, IDLE)
        if idle < self._due:
            return ""
        if self._found is None:
            self._found = self.where(self.nodes)
        began, earlier, self._deadlines = time.monotonic(), self._deadlines, {}
        with ThreadPoolExecutor(THREADS) as threads:
            patiences = [*threads.map(_patience, self._found.values())]
        for name, patience in zip(self._found, patiences, strict=True):
            if patience is None:
                self._reachable.add(name)
            elif patience == REFUSING or name in self._reachable:  # else a firewall may be silent
                deadline = began + patience
                self._deadlines[name] = min(deadline, earlier.get(name, deadline))
        self._due = idle + AGAIN if self._deadlines else max(IDLE, idle + min(idle, LATER))
        now = time.monotonic()
        gone = [name for name, deadline in self._deadlines.items() if now >= deadline]
        return f"no slurmd answers on {', '.join(gone)}" if gone else ""


def _patience(address: Address) -> float | None:
    """Seconds for which a slurmd may go on like this; None where it answers."""
    try:
        socket.create_connection(address, CONNECT).close()
    except ConnectionRefusedError:
        return REFUSING
    except OSError:
        return SILENT
    return None
