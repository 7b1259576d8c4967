"""From a request to a finished results folder: what stands behind `invoke run`.

Puts together what other modules know; parses no flags and starts no launch itself.
"""

import contextlib
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import docker

import hbmcomm
from experiments import results, runner, spec
from experiments.environments.docker import PROFILE, Docker
from experiments.environments.host import Host
from experiments.measure import machine
from experiments.provision import bootstrap, engine, image, mpi, passthrough, wheelhouse
from experiments.provision.image import Image
from experiments.schedule import Launch, schedule
from experiments.spec import Experiment
from experiments.stages import Stages

DRY_RUN = "dry-run"
HBM_VARIABLES = ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES")
"""How a user tells memkind and us where HBM is; every arm must be told the same."""

LACKS = (engine.EngineMissing, bootstrap.BaseMissing, wheelhouse.WheelhouseIncomplete)
"""What a machine may lack for a container; an image that does not build is a defect instead."""


@dataclass(frozen=True)
class Request:
    """What a campaign needs beside its experiment.

    Attributes:
        out: the results folder, to begin or to complete.
        mpi: one of environments.mpiexec.FLAVOURS.
        base: base image: "auto", "bootstrap" or an image's name.
        seed: of every random order; None draws one.
        optional_docker: where no engine can be had, leave the container arm out and say so,
            instead of failing.
    """

    out: Path
    mpi: str = "openmpi"
    base: str = "auto"
    seed: int | None = None
    optional_docker: bool = False


def run(experiment: Experiment, request: Request, stages: Stages) -> None:
    """Measure a new campaign into request.out.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    spec.check_ranks(experiment, passthrough.cores())
    results.refuse_existing(request.out)
    with _ready(experiment, request, stages) as arm:
        if arm.missing:
            experiment = _without_docker(experiment)
            stages.say(arm.missing)
        header = _header(experiment, request, arm)
        results.create(request.out, header)
        _measure(header, request.out, arm, stages)


def resume(out: Path, stages: Stages) -> None:
    """Complete the campaign in a results folder as it was begun.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    header = results.read_header(out)
    experiment = Experiment.from_dict(header["experiment"], f"{out}/campaign.json")
    request = Request(out, header["mpi"], header["base"])
    with _ready(experiment, request, stages) as arm:
        _measure(header, out, arm, stages)


def dry_run(experiment: Experiment, request: Request) -> list[str]:
    """Every command that run() would start with this seed (0 where none is given), as shell lines.

    Starts nothing. The container's image stands there by its name, not its digest.
    """
    spec.check_ranks(experiment, passthrough.cores())
    environments = _environments(
        request.mpi, _variables(experiment), image.tag(request.mpi), DRY_RUN
    )
    launches = _launches(experiment, request.seed or 0)
    return [_line(environments, launch, request.out) for launch in launches]


def dry_resume(out: Path) -> list[str]:
    """Every command that resume() would start, as shell lines, in its order."""
    header = results.read_header(out)
    experiment = Experiment.from_dict(header["experiment"], f"{out}/campaign.json")
    environments = _environments(
        header["mpi"], header["variables"], image.tag(header["mpi"]), header["id"]
    )
    finished = results.finished(out)
    return [
        _line(environments, launch, out)
        for launch in _launches(experiment, header["seed"])
        if launch.name not in finished
    ]


def _launches(experiment: Experiment, seed: int) -> list[Launch]:
    return [launch for block in schedule(experiment, seed) for launch in block.launches]


def _line(environments: Mapping[str, runner.Environment], launch: Launch, out: Path) -> str:
    folder = (out / "incoming" / launch.name).absolute()
    return environments[launch.environment].command(launch, folder).shell()


@dataclass(frozen=True)
class ContainerArm:
    """What containers run with: an engine's client and an image in it, or why there is none."""

    client: "docker.DockerClient | None" = None
    image: Image | None = None
    missing: str = ""


@contextlib.contextmanager
def _ready(experiment: Experiment, request: Request, stages: Stages) -> Iterator[ContainerArm]:
    """The MPI's environment, an engine that answers and an image in it, as far as needed."""
    mpi.ensure(request.mpi, stages.say)
    if "docker" not in experiment.launches.environments:
        yield ContainerArm()
        return
    with contextlib.ExitStack() as stack:
        try:
            with stages.stage("engine"):
                client = stack.enter_context(engine.running())
            with stages.stage("image"):
                found = image.ensure(client, request.base, request.mpi, stages.say)
        except LACKS as lack:
            if not request.optional_docker:
                raise
            yield ContainerArm(missing=f"docker: left out, {lack}")
            return
        yield ContainerArm(client, found)


def _measure(
    header: Mapping[str, Any],
    out: Path,
    arm: ContainerArm,
    stages: Stages,
) -> None:
    experiment = Experiment.from_dict(header["experiment"], f"{out}/campaign.json")
    blocks = schedule(experiment, header["seed"])
    name = arm.image.id if arm.image else image.tag(header["mpi"])
    environments = _environments(header["mpi"], header["variables"], name, header["id"])
    launches = sum(len(block.launches) for block in blocks)
    stages.say(f"measuring {experiment.title!r} into {out}: {launches} launches")
    try:
        with (
            stages.stage("measurement", spinner=False),
            _no_containers_left(arm.client, header["id"]),
        ):
            runner.run(out, blocks, environments, arm.client, passthrough.owner())
    except KeyboardInterrupt:
        stages.say(f"stopped; finished launches are kept. To go on: ./inv run --resume --out {out}")
        raise


@contextlib.contextmanager
def _no_containers_left(client: "docker.DockerClient | None", campaign: str) -> Iterator[None]:
    """Remove the campaign's containers before, where an engine died on them, and after."""
    if client is None:
        yield
        return
    engine.remove_containers(client, campaign)
    try:
        yield
    finally:
        with contextlib.suppress(engine.EngineMissing):  # one that is gone is told elsewhere
            engine.remove_containers(client, campaign)


def _environments(
    flavour: str, variables: Mapping[str, str], harness_image: str, campaign: str
) -> dict[str, runner.Environment]:
    cores = passthrough.cores()
    return {
        "host": Host(flavour, mpi.prefix(flavour), cores, variables),
        "docker": Docker(
            flavour,
            harness_image,
            image.PREFIX,
            cores,
            passthrough.machine(),
            campaign,
            variables,
        ),
    }


def _variables(experiment: Experiment) -> dict[str, str]:
    """For every rank: where HBM is, as the user says, or emulated where that is wanted."""
    told = {name: os.environ[name] for name in HBM_VARIABLES if os.environ.get(name)}
    topology = hbmcomm.topology()
    if experiment.measurement.emulate_hbw and not topology.hbm.nodes:
        nodes = [str(node.id) for node in topology.nodes if node.cpus and node.total_bytes]
        told["MEMKIND_HBW_NODES"] = ",".join(nodes)
    return told


def _without_docker(experiment: Experiment) -> Experiment:
    left = [name for name in experiment.launches.environments if name != "docker"]
    launches = replace(experiment.launches, environments=tuple(left) or ("host",))
    return replace(experiment, launches=launches)


def _header(experiment: Experiment, request: Request, arm: ContainerArm) -> dict[str, Any]:
    seed = random.SystemRandom().getrandbits(32) if request.seed is None else request.seed
    return {
        "name": experiment.name,
        "id": f"{time.time_ns():x}",
        "experiment": experiment.to_dict(),
        "seed": seed,
        "schedule": [
            {"block": block.number, "launches": [launch.name for launch in block.launches]}
            for block in schedule(experiment, seed)
        ],
        "mpi": request.mpi,
        "base": request.base,
        "variables": _variables(experiment),
        "container": _container(arm),
        "missing": [arm.missing] if arm.missing else [],
        "machine": machine.machine(),
        "git": image.revision(),
        "command": sys.argv,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _container(arm: ContainerArm) -> dict[str, str]:
    """What the container arm is: the profile is a factor, never a hidden constant."""
    if arm.image is None:
        return {}
    return {
        "engine": "docker",
        "profile": PROFILE,
        "layout": "one",
        "image": arm.image.id,
        "base": arm.image.base,
        "python": arm.image.python,
        "inputs": arm.image.inputs,
    }
