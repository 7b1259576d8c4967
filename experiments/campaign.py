"""From a request to a finished results folder: what stands behind `invoke run`.

Puts together what other modules know; parses no flags and starts no launch itself.
"""

import contextlib
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
from experiments.environments.docker import Docker
from experiments.environments.host import Host
from experiments.measure import machine
from experiments.provision import bootstrap, engine, image, mpi, passthrough, wheelhouse
from experiments.schedule import schedule
from experiments.spec import Experiment
from experiments.stages import Stages

DRY_RUN = "dry-run"
LACKS = (engine.EngineMissing, bootstrap.BaseMissing, wheelhouse.WheelhouseIncomplete)
"""What a machine may lack for a container; an image that does not build is a defect instead."""


@dataclass(frozen=True)
class Request:
    """What a campaign needs beside its experiment.

    Attributes:
        out: the results folder, to begin or to complete.
        mpi: one of provision.mpi.FLAVOURS.
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
    with _ready(experiment, request, stages) as (client, missing):
        if missing:
            experiment = _without_docker(experiment)
            stages.say(missing)
        header = _header(experiment, request, [missing] if missing else [])
        results.create(request.out, header)
        _measure(header, request.out, client, stages)


def resume(out: Path, stages: Stages) -> None:
    """Complete the campaign in a results folder as it was begun.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    header = results.read_header(out)
    experiment = Experiment.from_dict(header["experiment"], f"{out}/campaign.json")
    request = Request(out, header["mpi"], header["base"])
    with _ready(experiment, request, stages) as (client, _):
        _measure(header, out, client, stages)


def dry_run(experiment: Experiment, request: Request) -> list[str]:
    """Every command that run() would start, as a shell line, in its order; starts nothing."""
    spec.check_ranks(experiment, passthrough.cores())
    environments = _environments(experiment, request.mpi, DRY_RUN)
    return [
        environments[launch.environment]
        .command(launch, (request.out / "incoming" / launch.name).absolute())
        .shell()
        for block in schedule(experiment, request.seed or 0)
        for launch in block.launches
    ]


@contextlib.contextmanager
def _ready(
    experiment: Experiment, request: Request, stages: Stages
) -> Iterator[tuple["docker.DockerClient | None", str]]:
    """The MPI's environment, an engine that answers and an image in it, as far as needed.

    Yields:
        The engine's client, or None and the line that says why there is none.
    """
    mpi.ensure(request.mpi, stages.say)
    if "docker" not in experiment.launches.environments:
        yield None, ""
        return
    with contextlib.ExitStack() as stack:
        try:
            with stages.stage("engine"):
                client = stack.enter_context(engine.running())
            with stages.stage("image"):
                image.ensure(client, request.base, request.mpi, stages.say)
        except LACKS as lack:
            if not request.optional_docker:
                raise
            yield None, f"docker: left out, {lack}"
            return
        yield client, ""


def _measure(
    header: Mapping[str, Any],
    out: Path,
    client: "docker.DockerClient | None",
    stages: Stages,
) -> None:
    experiment = Experiment.from_dict(header["experiment"], f"{out}/campaign.json")
    blocks = schedule(experiment, header["seed"])
    environments = _environments(experiment, header["mpi"], header["id"])
    launches = sum(len(block.launches) for block in blocks)
    stages.say(f"measuring {experiment.title!r} into {out}: {launches} launches")
    try:
        with stages.stage("measurement"), _no_containers_left(client, header["id"]):
            runner.run(out, blocks, environments, client, passthrough.owner())
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
    experiment: Experiment, flavour: str, campaign: str
) -> dict[str, runner.Environment]:
    variables = _variables(experiment)
    cores = passthrough.cores()
    return {
        "host": Host(flavour, mpi.prefix(flavour), cores, variables),
        "docker": Docker(
            flavour,
            image.tag(flavour),
            image.PREFIX,
            cores,
            passthrough.machine(),
            campaign,
            variables,
        ),
    }


def _variables(experiment: Experiment) -> dict[str, str]:
    """For every rank: emulated HBM, where it is wanted and the machine has none of its own."""
    topology = hbmcomm.topology()
    if not experiment.measurement.emulate_hbw or topology.hbm.nodes:
        return {}
    nodes = [str(node.id) for node in topology.nodes if node.cpus and node.total_bytes]
    return {"MEMKIND_HBW_NODES": ",".join(nodes)}


def _without_docker(experiment: Experiment) -> Experiment:
    left = [name for name in experiment.launches.environments if name != "docker"]
    launches = replace(experiment.launches, environments=tuple(left) or ("host",))
    return replace(experiment, launches=launches)


def _header(experiment: Experiment, request: Request, missing: list[str]) -> dict[str, Any]:
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
        "missing": missing,
        "machine": machine.machine(),
        "git": image.revision(),
        "command": sys.argv,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
