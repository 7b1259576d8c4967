"""An emulated machine: a launch in its guest, as on the host there or in Docker there.

What the command is, host.py and docker.py know; here it is brought into the guest. The driver
starts, watches and ends it as a process of its own: emulation/inside_guest.py is that process.
"""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.environments.docker import Docker
from experiments.environments.host import Host
from experiments.environments.process import Container, Process
from experiments.model.launch import Launch

LAUNCHES = Path("/launch")  # where the guest has the folders of launches, by their names
GRACE = 30.0  # seconds that ending takes in a guest: an engine without KVM needs 7 for anything


@dataclass(frozen=True)
class Vm:
    """Launches in the guest of an emulated machine.

    Attributes:
        there: the environment in the guest: its prefix, its CPUs, its engine.
        agent: socket of the guest's agent, on this machine.
    """

    there: Host | Docker
    agent: Path

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json and comes back with what it wrote."""
        command = self.there.command(launch, LAUNCHES / folder.name)
        options: tuple[str, ...] = ()
        if isinstance(command, Container):  # its client may end before it
            gone = shlex.join([command.engine, "rm", "--force", command.options["name"]])
            options = ("--root", "--after", gone)
        else:
            assert isinstance(command, Process), "a guest has no network for several containers"
        return inside(self.agent, folder, command.words(), *options)


def inside(agent: Path, folder: Path, words: Sequence[str], *options: str) -> Process:
    """The process of this machine that runs a command in a guest.

    Args:
        agent: socket of the guest's agent.
        folder: of this machine; goes to LAUNCHES there, and what the command writes comes back.
        options: of emulation/inside_guest.py.
    """
    program = (sys.executable, "-P", "-m", "experiments.emulation.inside_guest")
    where = ("--agent", str(agent), "--folder", str(folder))
    return Process((*program, *where, *options, "--", *words), grace=GRACE)
