"""From a request to a finished results folder: what stands behind `invoke run`.

Puts together what other modules know; parses no flags and starts no launch itself.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import hbmcomm
from experiments.console.stages import Stages
from experiments.emulation import description
from experiments.environments.apptainer import Apptainer
from experiments.environments.charliecloud import Charliecloud
from experiments.environments.docker import Docker
from experiments.environments.host import Host
from experiments.environments.mpi.debug_output import asking
from experiments.environments.userland import Userland
from experiments.environments.vm import Vm
from experiments.execution import backends, forecast, inventory, runner
from experiments.execution.backends import Equipment
from experiments.execution.cleanup import watchdog
from experiments.execution.cleanup.watchdog import Watch
from experiments.execution.forecast import Host as Rates
from experiments.execution.launching import Environment, Environments
from experiments.model import spec
from experiments.model.arms import HARNESS
from experiments.model.environment import ENGINES, in_docker_there, machine_of
from experiments.model.experiment import Experiment
from experiments.model.launch import Launch
from experiments.programs.baselines.launches import COUNTERPARTS, Baseline
from experiments.programs.external import imb
from experiments.programs.external.imb import Imb
from experiments.programs.machine import facts as machine
from experiments.provision import passthrough
from experiments.provision.engines import engine
from experiments.provision.images import image, unpacked
from experiments.provision.qemu import qemu_binary
from experiments.provision.wheels import mpi
from experiments.results import store
from experiments.schedule.blocks import schedule

DRY_RUN = "dry-run"
TREES: Mapping[str, Callable[..., Environment]] = {
    "userland": Userland,
    "charliecloud": Charliecloud,
    "apptainer": Apptainer,
}
"""Environments over the image as a folder."""
HBM_VARIABLES = ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES")
"""How a user tells memkind and us where HBM is; every arm must be told the same."""


@dataclass(frozen=True)
class Request:
    """What a campaign needs beside its experiment.

    Attributes:
        out: the results folder, to begin or to complete.
        base: base image: "auto", "bootstrap" or an image's name.
        seed: of every random order; None draws one.
        optional: where an environment or one of several MPIs cannot be had, leave its arms out and
            say so, instead of failing.
        variables: for every rank, beside those that say where HBM is.
        notes: for campaign.json, beside what is in all of them.
    """

    out: Path
    base: str = "auto"
    seed: int | None = None
    optional: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def run(experiment: Experiment, request: Request, stages: Stages) -> list[str]:
    """Measure a new campaign into request.out; what failed in a container, one message each.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    _check_ranks(experiment)
    store.refuse_existing(request.out)
    with (
        watchdog.watching(request.out, stages.say) as watch,
        backends.ready(experiment, request.base, request.optional, stages) as found,
    ):
        for name, why in found.missing.items():
            stages.say(f"{name}: {why}")
        left = found.without_missing(experiment)
        for line in expected(left):
            stages.say(line)
        header = _header(left, request, found)
        store.create(request.out, header)
        store.write_json(request.out / inventory.NAME, inventory.inventory(experiment, found))
        return _measure(header, request.out, found, watch, stages)


def resume(out: Path, stages: Stages) -> list[str]:
    """Complete the campaign in a results folder as it was begun; answers as run() does.

    Nothing is started for a campaign that is complete.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    header = store.read_header(out)
    experiment = spec.from_dict(header["experiment"], f"{out}/campaign.json")
    if not _unfinished(experiment, header["seed"], out):
        stages.say(f"the campaign in {out} is complete; draw it: ./inv report --results {out}")
        return []
    _refuse_other_machine(header, experiment, out)
    with (
        watchdog.watching(out, stages.say) as watch,
        backends.ready(experiment, header["base"], False, stages) as found,
    ):
        _refuse_other_guest(header, experiment, found, out)
        return _measure(header, out, found, watch, stages)


def dry_run(experiment: Experiment, request: Request) -> list[str]:
    """Every command that run() would start with this seed (0 where none is given), as shell lines.

    Starts nothing. The container's image stands there by its name, not its digest; a guest's agent
    by its machine's.
    """
    _check_ranks(experiment)
    environments = _environments(experiment, _variables(experiment), DRY_RUN, Equipment())
    launches = _launches(experiment, request.seed or 0)
    return [_line(environments, launch, request.out) for launch in launches]


def expected(experiment: Experiment) -> list[str]:
    """How long the campaign takes here and how much memory it needs, in lines for a user.

    Of an emulated machine nothing: its speed is QEMU's.
    """
    if _machine(experiment):
        return []
    host = Rates(passthrough.cores(), machine.copy_rate(), machine.last_level_cache())
    nodes = hbmcomm.topology().nodes
    return forecast.told(
        forecast.forecast(schedule(experiment, 0), host),
        machine.available_memory(),
        {node.id: node.total_bytes for node in nodes if node.is_hbm},
    )


def dry_resume(out: Path) -> list[str]:
    """Every command that resume() would start, as shell lines, in its order."""
    header = store.read_header(out)
    experiment = spec.from_dict(header["experiment"], f"{out}/campaign.json")
    environments = _environments(experiment, header["variables"], header["id"], Equipment())
    return [
        _line(environments, launch, out) for launch in _unfinished(experiment, header["seed"], out)
    ]


def _launches(experiment: Experiment, seed: int) -> list[Launch]:
    return [launch for block in schedule(experiment, seed) for launch in block.launches]


def _unfinished(experiment: Experiment, seed: int, out: Path) -> list[Launch]:
    finished = store.finished(out)
    return [launch for launch in _launches(experiment, seed) if launch.name not in finished]


def _line(environments: Environments, launch: Launch, out: Path) -> str:
    folder = (out / "incoming" / launch.name).absolute()
    return environments(launch).command(launch, folder).shell()


def _measure(
    header: Mapping[str, Any], out: Path, found: Equipment, watch: Watch, stages: Stages
) -> list[str]:
    experiment = spec.from_dict(header["experiment"], f"{out}/campaign.json")
    blocks = schedule(experiment, header["seed"])
    gone = {
        name: found.guests[machine, flavour].death
        for name in experiment.launches.environments
        if (machine := machine_of(name))
        for flavour in experiment.launches.mpis
    }
    environments = _environments(experiment, header["variables"], header["id"], found)
    launches = sum(len(block.launches) for block in blocks)
    stages.say(f"measuring {experiment.title!r} into {out}: {launches} launches")
    try:
        with (
            stages.stage("measurement", spinner=False),
            watch.campaign(header["id"], found.clients),
        ):
            return runner.run(out, blocks, environments, found.clients, passthrough.owner(), gone)
    except KeyboardInterrupt:
        stages.say(f"stopped; finished launches are kept. To go on: ./inv run --resume --out {out}")
        raise
    except FileNotFoundError as error:
        if (out / "campaign.json").exists():
            raise
        raise store.ResultsError(
            f"{out} was removed or emptied while the campaign measured into it; nothing of it is "
            "left: measure again"
        ) from error


def _environments(
    experiment: Experiment, variables: Mapping[str, str], campaign: str, found: Equipment
) -> Callable[[Launch], Environment]:
    """What turns each launch into a command; images by their names where none is ready."""
    cores, passed = passthrough.cores(), passthrough.machine()
    versions = {name: engine.version_of(each) for name, each in found.clients.items()}
    made: dict[tuple[str, str], Environment] = {}
    for flavour in experiment.launches.mpis:
        prefix = mpi.prefix(flavour)
        spoken = {**variables, **asking(flavour)}
        made["host", flavour] = Host(flavour, prefix, cores, spoken)
        for name in ENGINES:
            ready = found.images.get((name, flavour))
            made[name, flavour] = Docker(
                flavour,
                ready.id if ready else image.tag(flavour),
                image.PREFIX,
                cores,
                passed,
                campaign,
                spoken,
                engine=name,
                version=versions.get(name, ""),
                host_prefix=prefix,
            )
        unpacked_here = (flavour, unpacked.place(flavour), image.PREFIX, cores, passed, spoken)
        for name, runtime in TREES.items():
            made[name, flavour] = runtime(*unpacked_here, root=os.getuid() == 0)
        for name in filter(machine_of, experiment.launches.environments):
            made[name, flavour] = _there(name, flavour, campaign, spoken, found)
        for name in COUNTERPARTS:
            made[name, flavour] = Baseline(flavour, prefix, cores, spoken)
    made[imb.NAME, imb.FLAVOUR] = Imb(mpi.prefix(imb.FLAVOUR), cores, variables)
    return lambda launch: made[
        launch.environment if launch.program == HARNESS else launch.program, launch.mpi
    ]


def _there(
    name: str, flavour: str, campaign: str, variables: Mapping[str, str], found: Equipment
) -> Vm:
    """An emulated machine's bare metal, or Docker in it; its guest has the image's environment."""
    machine = machine_of(name)
    described = description.load(machine)
    guest = found.guests.get((machine, flavour))
    agent = guest.socket if guest else Path(f"{machine}.agent")
    if not in_docker_there(name):
        spoken = {**variables, "HOME": "/tmp"}
        return Vm(Host(flavour, image.PREFIX, described.cpus, spoken), agent)
    passed = passthrough.emulated(described)
    each = (flavour, image.tag(flavour), image.PREFIX, described.cpus, passed, campaign, variables)
    return Vm(Docker(*each), agent)


def _machine(experiment: Experiment) -> str:
    """The emulated machine that all launches run in, "" where they run in none."""
    return machine_of(experiment.launches.environments[0])


def _check_ranks(experiment: Experiment) -> None:
    if machine := _machine(experiment):
        spec.check_ranks(experiment, description.load(machine).cpus, machine)
    else:
        spec.check_ranks(experiment, passthrough.cores())


def _refuse_other_machine(header: Mapping[str, Any], experiment: Experiment, out: Path) -> None:
    """Launches in another machine than the first ones ran in are no part of their campaign."""
    emulated = _machine(experiment)
    if emulated and header["emulated"]["description"] != _plain(emulated):
        raise store.ResultsError(
            f"the description of {emulated} has changed since {out} was begun, so that what is "
            "missing would be measured in another machine; measure again into another --out"
        )
    _refuse_changes("this machine", header.get("machine", {}), machine.identity(), out)


def _refuse_other_guest(
    header: Mapping[str, Any], experiment: Experiment, found: Equipment, out: Path
) -> None:
    """What emulates the machine, and what its guest holds, is told once for all launches."""
    begun, now = header["emulated"], _emulated(experiment, found)
    _refuse_changes(_machine(experiment), begun, now, out)


def _refuse_changes(what: str, begun: Mapping[str, Any], now: Mapping[str, Any], out: Path) -> None:
    others = [
        f"{key}: {begun.get(key)} then, {now[key]} now" for key in now if begun.get(key) != now[key]
    ]
    if others:
        raise store.ResultsError(
            f"{what} is not as it was when {out} was begun ({'; '.join(others)}), so that what is "
            "missing would be measured in another machine; measure again into another --out"
        )


def _plain(machine: str) -> dict[str, Any]:
    """A description as JSON holds it."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(description.load(machine))))
    return plain


def _variables(experiment: Experiment) -> dict[str, str]:
    """For every rank: where HBM is, as the user says, or emulated where that is wanted.

    What the user says is of this machine, and not told in an emulated one.
    """
    if machine := _machine(experiment):
        described = description.load(machine)
        wanted = experiment.measurement.emulate_hbw and not described.found.hbm
        own = ",".join(str(node.id) for node in described.cpu_nodes)
        return {"MEMKIND_HBW_NODES": own} if wanted else {}
    told = {name: os.environ[name] for name in HBM_VARIABLES if os.environ.get(name)}
    topology = hbmcomm.topology()
    if experiment.measurement.emulate_hbw and not topology.hbm.nodes:
        nodes = [str(node.id) for node in topology.nodes if node.cpus and node.total_bytes]
        told["MEMKIND_HBW_NODES"] = ",".join(nodes)
    return told


def _header(experiment: Experiment, request: Request, found: Equipment) -> dict[str, Any]:
    seed = random.SystemRandom().getrandbits(32) if request.seed is None else request.seed
    return {
        **request.notes,
        "name": experiment.name,
        "id": f"{time.time_ns():x}",
        "experiment": experiment.to_dict(),
        "seed": seed,
        "schedule": [
            {"block": block.number, "launches": [launch.name for launch in block.launches]}
            for block in schedule(experiment, seed)
        ],
        "base": request.base,
        "variables": _variables(experiment) | dict(request.variables),
        "containers": _containers(found),
        "engines": {name: engine.parts(client) for name, client in found.clients.items()},
        "emulated": _emulated(experiment, found),
        "missing": [f"{name}: {why}" for name, why in found.missing.items()],
        "machine": machine.machine(),
        "git": image.revision(),
        "command": sys.argv,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _emulated(experiment: Experiment, found: Equipment) -> dict[str, Any]:
    """The emulated machine, and what emulates it; empty where none does."""
    machine, flavour = _machine(experiment), experiment.launches.mpis[0]
    if not machine:
        return {}
    guest = found.guests[machine, flavour]
    return {
        "machine": machine,
        "description": _plain(machine),
        "accelerator": guest.accelerator,
        "qemu": qemu_binary.version(),
        "disk": guest.disk.id,
    }


def _containers(found: Equipment) -> dict[str, dict[str, dict[str, str]]]:
    """What the container arms run, by environment and MPI."""
    told: dict[str, dict[str, dict[str, str]]] = {}
    for (environment, flavour), each in found.images.items():
        told.setdefault(environment, {})[flavour] = {
            "image": each.id,
            "base": each.base,
            "python": each.python,
            "inputs": each.inputs,
        }
    return told
