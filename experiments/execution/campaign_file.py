"""A campaign as one value: made of an experiment, or read from campaign.json."""

import os
import random
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import hbmcomm
from experiments.catalogue import spec
from experiments.emulation import description
from experiments.execution import inventory
from experiments.execution.backends import Backends
from experiments.model.experiment import Experiment
from experiments.model.launch import Block, Launch
from experiments.programs.machine import facts
from experiments.provision.images import image
from experiments.results import store
from experiments.schedule.blocks import schedule

DRY_RUN = "dry-run"
HBM_VARIABLES = ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES")
"""Where a user says that HBM is, to memkind and to us; every arm has them."""


@dataclass(frozen=True)
class Campaign:
    """What is measured, in which order and with what.

    Attributes:
        id: labels its containers.
        base: base image: "auto", "bootstrap" or an image's name.
        variables: for every rank.
        site: the cluster, as sites.toml names it.
        python: folder of an environment that the site provides for arms without a container; ""
            where these run in an environment of the project.
        stored: campaign.json, for one that was begun before.
    """

    experiment: Experiment
    seed: int
    id: str
    base: str
    variables: Mapping[str, str]
    site: str = ""
    python: str = ""
    stored: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Its launches as they run: one seed, one schedule."""
        return schedule(self.experiment, self.seed)

    @property
    def launches(self) -> list[Launch]:
        """All launches, in their order."""
        return [launch for block in self.blocks for launch in block.launches]

    def unfinished(self, out: Path) -> list[Launch]:
        """The launches that a results folder lacks."""
        finished = store.finished(out)
        return [launch for launch in self.launches if launch.name not in finished]

    def header(self, found: Backends) -> dict[str, Any]:
        """campaign.json of a campaign that begins now."""
        return {
            "name": self.experiment.name,
            "id": self.id,
            "experiment": self.experiment.to_dict(),
            "seed": self.seed,
            "schedule": [
                {"block": block.number, "launches": [launch.name for launch in block.launches]}
                for block in self.blocks
            ],
            "base": self.base,
            "variables": dict(self.variables),
            "site": self.site,
            "python": self.python,
            **inventory.recorded(self.experiment, found),
            **origin(),
        }


def origin() -> dict[str, Any]:
    """What a header records of the machine, the code and the command of a measurement."""
    return {
        "machine": facts.machine(),
        "git": image.revision(),
        "command": sys.argv,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def drawn() -> int:
    """A seed for a measurement that was given none."""
    return random.SystemRandom().getrandbits(32)


def make(
    experiment: Experiment,
    seed: int | None,
    base: str,
    more: Mapping[str, str],
    site: str = "",
    python: str = "",
) -> Campaign:
    """A campaign that begins now.

    Args:
        seed: of every random order; None draws one.
        more: variables for every rank, beside those that say where HBM is.
    """
    chosen = drawn() if seed is None else seed
    variables = _hbm_variables(experiment) | dict(more)
    return Campaign(experiment, chosen, f"{time.time_ns():x}", base, variables, site, python)


def plan(
    experiment: Experiment, seed: int | None, base: str, site: str = "", python: str = ""
) -> Campaign:
    """A campaign that only shows its commands; its seed is 0 where none is given."""
    variables = _hbm_variables(experiment)
    return Campaign(experiment, seed or 0, DRY_RUN, base, variables, site, python)


def read(out: Path) -> Campaign:
    """The campaign of a results folder, as it was begun.

    Raises:
        ResultsError: the folder holds none; SpecError: this machine cannot measure it.
    """
    stored = store.read_header(out)
    experiment = spec.from_dict(stored["experiment"], f"{out}/campaign.json")
    name, base = stored.get("id", ""), stored.get("base", "auto")
    places = stored.get("site", ""), stored.get("python", "")
    return Campaign(experiment, stored["seed"], name, base, stored["variables"], *places, stored)


def _hbm_variables(experiment: Experiment) -> dict[str, str]:
    """Where HBM is, as the user says, or emulated where that is wanted.

    What the user says is of this machine, and not for an emulated one.
    """
    if experiment.machine:
        described = description.load(experiment.machine)
        wanted = experiment.measurement.emulate_hbw and not described.found.hbm
        own = ",".join(str(node.id) for node in described.cpu_nodes)
        return {"MEMKIND_HBW_NODES": own} if wanted else {}
    given = {name: os.environ[name] for name in HBM_VARIABLES if os.environ.get(name)}
    topology = hbmcomm.topology()
    if experiment.measurement.emulate_hbw and not topology.hbm.nodes:
        nodes = [str(node.id) for node in topology.nodes if node.cpus and node.total_bytes]
        given["MEMKIND_HBW_NODES"] = ",".join(nodes)
    return given
