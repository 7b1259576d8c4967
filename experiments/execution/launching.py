"""What launches of a campaign have in common, what a launch's folder holds before it starts, and
what is checked before its result is taken in."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import docker

from experiments.analysis import metadata_diff
from experiments.environments.process import Command
from experiments.model.environment import APPTAINER, DOCKER, PODMAN, USERLAND, EnvironmentId
from experiments.model.launch import Launch
from experiments.results import store

RESUME = "--resume goes on from here"
"""What to do about a launch that failed, as an error message ends."""
FOREIGN = (USERLAND, DOCKER, PODMAN, APPTAINER)
"""Environments where ranks run as another user than a driver that is root."""


class Environment(Protocol):
    """Anything that turns a launch into a command."""

    def command(self, launch: Launch, folder: Path) -> Command:
        """The command that runs the harness over a folder holding launch.json."""


Environments = Callable[[Launch], Environment]
"""Which environment a launch runs in."""


@dataclass(frozen=True)
class LaunchContext:
    """What launches of a campaign have in common.

    Attributes:
        folder: a results folder that store.create has begun.
        owner: uid and gid that container ranks write as.
        clients: engines' clients, for environments that answer with a container.
        gone: by environment, what tells why its emulated machine is gone: "" while it runs.
    """

    folder: Path
    environments: Environments
    owner: tuple[int, int]
    clients: Mapping[EnvironmentId, docker.DockerClient] = field(default_factory=dict)
    gone: Mapping[EnvironmentId, Callable[[], str]] = field(default_factory=dict)

    def client(self, launch: Launch) -> docker.DockerClient | None:
        """The client of the engine that runs a launch, None without an engine."""
        return self.clients.get(launch.environment)

    def prepare(self, launch: Launch, place: Path) -> Command:
        """Write launch.json into a launch's folder; the command that runs there."""
        store.write_json(place / "launch.json", launch.to_dict())
        if launch.environment in FOREIGN and os.getuid() == 0:
            for path in (place, *place.iterdir()):
                os.chown(path, *self.owner)
        return self.environments(launch).command(launch, place.absolute())

    def check(self, launch: Launch, place: Path, command: Command) -> None:
        """Add the command to what a launch wrote; refuse what cannot be compared with others.

        Raises:
            ResultsError: it holds other code than a finished launch of the same MPI and program.
        """
        self._refuse_other_code(launch.name, place)
        store.add(place, {"command": command.shell()})

    def _refuse_other_code(self, name: str, place: Path) -> None:
        """Every launch must hold the MPI and the code of those before it that run the same."""
        result = place / "result.json"
        if not result.exists():  # accept() will refuse it
            return
        other = json.loads(result.read_text(encoding="utf-8"))
        first = self._first_like(other["launch"])
        found = (
            metadata_diff.refusals(store.read_launch(self.folder, first), other) if first else {}
        )
        if found:
            differences = "; ".join(
                f"{key}: {one} against {two}" for key, (one, two) in found.items()
            )
            raise store.ResultsError(
                f"launches {first} and {name} do not hold the same code ({differences}) and cannot "
                "be compared; measure again into another --out"
            )

    def _first_like(self, asked: Mapping[str, str]) -> str | None:
        """The first finished launch with the same MPI and program."""
        for name in sorted(store.finished(self.folder)):
            launch = store.read_launch(self.folder, name)["launch"]
            if (launch["mpi"], launch["program"]) == (asked["mpi"], asked["program"]):
                return name
        return None
