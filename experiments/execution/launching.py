"""What launches of a campaign have in common, what a launch's folder holds before it starts, and
what is checked before its result is taken in."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from experiments.analysis import metadata_diff
from experiments.environments.process import Command
from experiments.jobs.execute import MachineGone
from experiments.model.environment import APPTAINER, DOCKER, PODMAN, USERLAND, EnvironmentId
from experiments.model.launch import Launch
from experiments.results import store

RESUME = "--resume goes on from here"
"""What to do about a launch that failed, as an error message ends."""
FOREIGN = (USERLAND, DOCKER, PODMAN, APPTAINER)
"""Environments where ranks run as another user than a driver that is root."""


@dataclass(frozen=True)
class LaunchContext:
    """What launches of a campaign have in common.

    Attributes:
        folder: a results folder that store.create has begun.
        command: of a launch over its own folder, which holds launch.json.
        owner: uid and gid that container ranks write as.
        clients: engines' clients, for environments that answer with a container.
        gone: by environment, a function: why a machine is gone that its launches run on, "" while
            all are there; given the seconds for which a launch has not got on.
    """

    folder: Path
    command: Callable[[Launch, Path], Command]
    owner: tuple[int, int]
    clients: Mapping[EnvironmentId, docker.DockerClient] = field(default_factory=dict)
    gone: Mapping[EnvironmentId, Callable[[float], str]] = field(default_factory=dict)

    def prepare(self, launch: Launch, place: Path) -> Command:
        """Write launch.json into a launch's folder; the command that runs there."""
        store.write_json(place / "launch.json", launch.to_dict())
        if launch.environment in FOREIGN and os.getuid() == 0:
            for path in (place, *place.iterdir()):
                os.chown(path, *self.owner)
        return self.command(launch, place.absolute())

    def check_presence(self, launch: Launch, idle: float) -> None:
        """See that the machines are there that a launch runs on.

        Args:
            idle: seconds for which it has not got on.

        Raises:
            MachineGone: one is not.
        """
        ask = self.gone.get(launch.environment)
        if ask and (why := ask(idle)):
            raise machine_gone(launch, why)

    def check(self, launch: Launch, place: Path, command: Command) -> None:
        """Add the command to what a launch wrote; refuse what cannot be compared with others.

        Raises:
            ResultsError: it holds other code than a finished launch of the same MPI and program.
        """
        result = place / "result.json"
        if result.exists():  # accept() refuses a launch without
            self._refuse_other_code(launch, store.read_json(result))
        store.add(place, {"command": command.shell()})

    def _refuse_other_code(self, launch: Launch, found: Mapping[str, Any]) -> None:
        """A launch must hold what the first finished one of the same MPI and program holds."""
        for name in sorted(store.finished(self.folder)):
            first = store.read_launch(self.folder, name)
            if (first["launch"]["mpi"], first["launch"]["program"]) != (launch.mpi, launch.program):
                continue
            if refused := metadata_diff.refusals(first, found):
                pairs = (f"{key}: {one} against {two}" for key, (one, two) in refused.items())
                raise store.ResultsError(
                    f"launches {name} and {launch.name} do not hold the same code "
                    f"({'; '.join(pairs)}) and cannot be compared; measure again into another --out"
                )
            return


def machine_gone(launch: Launch, why: str) -> MachineGone:
    """The error for a launch of which a machine is gone."""
    return MachineGone(
        f"launch {launch.name} ran on a machine that is gone: {why}\n"
        f"Finished launches are kept: {RESUME}"
    )
