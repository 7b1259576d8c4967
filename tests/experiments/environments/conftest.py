"""A small launch over every operation, started for real in an environment."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.execution.launching import FOREIGN, Environment
from experiments.jobs.execute import execute
from experiments.model.environment import EnvironmentId
from experiments.model.experiment import OPERATIONS, Measurement
from experiments.model.launch import Cell, Launch
from experiments.provision import passthrough
from tests.launched import LAUNCH


@pytest.fixture
def small_launch() -> Callable[..., Launch]:
    """small_launch(environment, profile="", kinds=..., mpi="openmpi"): every operation, briefly."""

    def make(
        environment: str,
        profile: str = "",
        kinds: tuple[str, ...] = ("regular", "hbw"),
        mpi: str = "openmpi",
    ) -> Launch:
        return replace(
            LAUNCH,
            arm="-".join(filter(None, (environment, profile, "one"))),
            environment=EnvironmentId.parse(environment),
            profile=profile,
            layout="one",
            mpi=mpi,
            measurement=Measurement(time_cap=0.01, min_iterations=6, max_iterations=20),
            cells=tuple(
                Cell(operation, transport, kind, "local", size)
                for kind in kinds
                for operation in OPERATIONS
                for transport, size in (("direct", 4), ("direct", 2**22), ("mpi", 100_000))
            ),
        )

    return make


@pytest.fixture
def measured(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """measured(environment, launch, client=None): its result.json, where it ended well.

    The harness checks the data of every operation and fails on a wrong one.
    """

    def measure(
        environment: Environment, launch: Launch, client: docker.DockerClient | None = None
    ) -> dict[str, Any]:
        folder = tmp_path / launch.name
        folder.mkdir()
        (folder / "launch.json").write_text(json.dumps(launch.to_dict()))
        if os.getuid() == 0 and launch.environment in FOREIGN:
            os.chown(folder, *passthrough.owner())
        log = tmp_path / f"{launch.name}.log"
        code = execute(environment.command(launch, folder), log, client, lambda: None)
        assert code == 0, log.read_text()
        result: dict[str, Any] = json.loads((folder / "result.json").read_text())
        assert len(result["cells"]) >= len(launch.cells)
        assert not [cell for cell in result["cells"] if "skipped" in cell]
        return result

    return measure
