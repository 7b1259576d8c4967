"""A launch of the harness, started for real in an environment."""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import docker
import pytest

from experiments.environments import profiles, runtime
from experiments.environments.process import Command
from experiments.jobs.execute import execute
from experiments.model.launch import Launch
from experiments.provision import passthrough


class Environment(Protocol):
    """Anything that turns a launch into a command."""

    def command(self, launch: Launch, folder: Path) -> Command:
        """The command that runs the harness over a folder holding launch.json."""


Measure = Callable[..., dict[str, Any]]


def measure(
    folder: Path,
    environment: Environment,
    launch: Launch,
    client: docker.DockerClient | None = None,
) -> dict[str, Any]:
    """What the fixtures do; the launch's folder and its log are in `folder`, by its name."""
    place, log = folder / launch.name, folder / f"{launch.name}.log"
    place.mkdir()
    (place / "launch.json").write_text(json.dumps(launch.to_dict()))
    if os.getuid() == 0 and runtime.changes_user(launch.environment):
        machine = passthrough.machine()
        own = (machine.uid, machine.gid)
        os.chown(place, *profiles.owner(launch.profile, own, machine.lent))
    code = execute(environment.command(launch, place), log, client, lambda: None)
    assert code == 0, log.read_text()
    result: dict[str, Any] = json.loads((place / "result.json").read_text())
    assert len(result["cells"]) >= len(launch.cells)
    assert not [cell for cell in result["cells"] if "skipped" in cell]
    return result


@pytest.fixture
def measured(tmp_path: Path) -> Measure:
    """measured(environment, launch, client=None): its result.json, where it ended well.

    The harness checks the data of every operation and fails on a wrong one.
    """
    return functools.partial(measure, tmp_path)


@pytest.fixture(scope="session")
def measured_in() -> Measure:
    """measured_in(folder, ...) as measured(...): for what several tests look at."""
    return measure
