"""What a launch's folder holds before it starts, and what is looked at before it is taken in."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from experiments.analysis import metadata_diff
from experiments.environments.process import Command
from experiments.model.launch import Launch
from experiments.results import store

RESUME = "--resume goes on from here"
"""What to do about a launch that failed, as an error message ends."""
FOREIGN = ("userland", "docker", "podman", "apptainer")
"""Environments where ranks run as another user than a driver that is root."""


class Environment(Protocol):
    """Anything that turns a launch into a command."""

    def command(self, launch: Launch, folder: Path) -> Command:
        """The command that runs the harness over a folder holding launch.json."""


Environments = Callable[[Launch], Environment]
"""Which environment a launch runs in."""


def prepare(
    place: Path, launch: Launch, environment: Environment, owner: tuple[int, int]
) -> Command:
    """Write launch.json into a launch's folder; the command that runs there.

    Args:
        owner: uid and gid that container ranks write as: the folder and all in it become theirs.
    """
    store.write_json(place / "launch.json", launch.to_dict())
    if launch.environment in FOREIGN and os.getuid() == 0:
        for path in (place, *place.iterdir()):
            os.chown(path, *owner)
    return environment.command(launch, place.absolute())


def look_at(folder: Path, launch: Launch, place: Path, command: Command) -> None:
    """Add the command to what a launch wrote; refuse what cannot be compared with others.

    Raises:
        ResultsError: it holds other code than a finished launch of the same MPI and program.
    """
    _refuse_other_code(folder, launch.name, place)
    store.add(place, {"command": command.shell()})


def _refuse_other_code(folder: Path, name: str, place: Path) -> None:
    """Every launch must hold the MPI and the code of those before it that run the same."""
    result = place / "result.json"
    if not result.exists():  # accept() will refuse it
        return
    other = json.loads(result.read_text(encoding="utf-8"))
    first = _first_like(folder, other["launch"])
    found = metadata_diff.refusals(store.read_launch(folder, first), other) if first else {}
    if found:
        differences = "; ".join(f"{key}: {one} against {two}" for key, (one, two) in found.items())
        raise store.ResultsError(
            f"launches {first} and {name} do not hold the same code ({differences}) and cannot "
            "be compared; measure again into another --out"
        )


def _first_like(folder: Path, asked: Mapping[str, str]) -> str | None:
    """The first finished launch with the same MPI and program."""
    for name in sorted(store.finished(folder)):
        launch = store.read_launch(folder, name)["launch"]
        if (launch["mpi"], launch["program"]) == (asked["mpi"], asked["program"]):
            return name
    return None
