"""From a request to a finished results folder: what `invoke run` calls.

Puts together what other modules know; parses no flags and starts no launch itself.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hbmcomm
from experiments.cluster import jobs, sites
from experiments.cluster.daemons import Daemons
from experiments.console import Stages
from experiments.driver import (
    backends,
    campaign_file,
    forecast,
    inventory,
    memory_fit,
    same_machine,
    watchdog,
)
from experiments.driver.backends import Backends
from experiments.driver.campaign_file import Campaign, Request
from experiments.driver.commands import Commands
from experiments.driver.forecast import Host
from experiments.driver.launching import LaunchContext
from experiments.driver.runner import Runner
from experiments.emulation import description
from experiments.emulation.boot import Guest
from experiments.machine import facts
from experiments.model.environment import EnvironmentId
from experiments.model.experiment import Experiment
from experiments.model.launch import Launch
from experiments.model.quantities import check_rank_counts, counted
from experiments.processes.folder_lock import FolderLock
from experiments.provision import passthrough, site_python, user_namespaces
from experiments.results import store
from experiments.schedule.blocks import Fits


def run(experiment: Experiment, request: Request, stages: Stages) -> list[str]:
    """Measure a new campaign into request.out; what failed in a container, one message each."""
    _check_place(experiment)
    store.refuse_existing(request.out)
    notes = {**request.notes, **_of_site(experiment, request.python, stages)}
    with (
        watchdog.watching(request.out, stages.say) as lock,
        backends.ready(experiment, request, stages) as prepared,
    ):
        for name, why in prepared.missing.items():
            stages.say(f"{name}: {why}")
        left = prepared.without_missing(experiment)
        campaign = campaign_file.make(left, request)
        for line in expected(campaign):
            stages.say(line)
        store.create(request.out, notes | campaign.header(inventory.recorded(left, prepared)))
        packages = inventory.inventory(left, prepared, request.python)
        store.write_json(request.out / inventory.NAME, packages)
        return _measure(campaign, prepared, lock, stages)


def resume(out: Path, stages: Stages, **again: str) -> list[str]:
    """Complete the campaign in a results folder as it was begun; what failed in a container.

    Nothing is started for a campaign that is complete.

    Args:
        again: as campaign_file.read() takes it.
    """
    campaign = campaign_file.read(out, **again)
    if not campaign.unfinished():
        stages.say(f"the campaign in {out} is complete; draw it: ./inv report --results {out}")
        return []
    experiment, request = campaign.experiment, campaign.request
    _check_place(experiment)
    same_machine.refuse_other_code(campaign)
    same_machine.refuse_other_machine(campaign)
    same_machine.refuse_other_software(campaign, _of_site(experiment, request.python, stages))
    with (
        watchdog.watching(out, stages.say) as lock,
        backends.ready(experiment, request, stages) as prepared,
    ):
        same_machine.refuse_other_guest(campaign, prepared)
        return _measure(campaign, prepared, lock, stages)


def plan(experiment: Experiment, request: Request) -> Campaign:
    """The campaign that run() would measure with this seed, 0 where none is given."""
    _check_ranks(experiment)
    return campaign_file.plan(experiment, request)


def dry_run(campaign: Campaign, launches: Sequence[Launch]) -> list[str]:
    """Every command that would start these launches of a campaign, as shell lines.

    Starts nothing. A container's image has its name here instead of its digest, a guest's agent the
    name of its machine.
    """
    commands, incoming = Commands(campaign, Backends()), campaign.request.out / "incoming"
    return [commands(launch, (incoming / launch.name).absolute()).shell() for launch in launches]


def preview(campaign: Campaign, launches: Sequence[Launch]) -> list[str]:
    """The commands of one block for each MPI, rank count and binding, and how many more there are.

    A campaign of hundreds of launches repeats these few in random order.
    """
    first: dict[tuple[object, ...], int] = {}
    for launch in launches:
        first.setdefault(
            (launch.mpi if not launch.setting else "", launch.ranks, launch.binding), launch.block
        )
    shown = [launch for launch in launches if launch.block in first.values()]
    more = len({launch.block for launch in launches}) - len(first)
    lines = dry_run(campaign, shown)
    if more:
        like = "it" if len(first) == 1 else f"one of these {len(first)}"
        lines.append(f"# {counted(more, 'more block')} like {like}, in random order")
    return lines


def lacking(campaign: Campaign) -> list[str]:
    """What the arms of a campaign need and this machine lacks, in lines for a user."""
    reasons = backends.lacking(campaign.experiment, campaign.request.base)
    return [f"{name} cannot run here: {why}" for name, why in reasons.items()]


def expected(campaign: Campaign) -> list[str]:
    """How long a campaign takes here and how much memory it needs, in lines for a user.

    Of an emulated machine nothing: its speed is QEMU's.
    """
    if campaign.experiment.machine:
        return []
    nodes = hbmcomm.topology().nodes
    return forecast.lines(
        campaign.blocks,
        this_host(),
        facts.available_memory(),
        {node.id: node.total_bytes for node in nodes if node.is_hbm},
    )


def seconds(campaign: Campaign) -> float:
    """How long the launches take that the results folder lacks, were the nodes as this machine."""
    return forecast.seconds(campaign.unfinished(), this_host())


def this_host() -> Host:
    """What forecasts need to know of this machine."""
    return Host(passthrough.cores(), facts.copy_rate(), facts.last_level_cache())


def _measure(campaign: Campaign, prepared: Backends, lock: FolderLock, stages: Stages) -> list[str]:
    asked, out = campaign.experiment.launches, campaign.request.out
    gone: dict[EnvironmentId, Callable[[float], str]] = {}
    for environment in asked.environments:
        if environment.machine:
            for flavour in asked.mpis:
                gone[environment] = partial(_death, prepared.guests[environment.machine, flavour])
        elif environment.on_cluster and (nodes := os.environ.get("SLURM_JOB_NODELIST")):
            gone[environment] = Daemons(nodes).gone
    owner, commands = passthrough.owner(), Commands(campaign, prepared)
    lent = user_namespaces.of_root()
    context = LaunchContext(out, commands, owner, prepared.clients, gone, prepared.files, lent=lent)
    title, launches = campaign.experiment.title, len(campaign.launches)
    stages.say(f"measuring {title!r} into {out}: {launches} launches")
    try:
        with (
            stages.stage("measurement", spinner=False),
            watchdog.in_engines(lock, campaign.label, prepared.engines),
        ):
            return Runner(context, campaign.blocks, _fits(campaign)).run()
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


def _death(guest: Guest, idle: float) -> str:
    why = guest.death()
    return f"the guest of {guest.description.name} ended: {why}" if why else ""


def _fits(campaign: Campaign) -> Fits:
    """Whether launches can be alive together: where there is memory, and a site allows it."""
    if not campaign.experiment.on_cluster:
        return memory_fit.fits
    if not sites.load(campaign.request.site, sites.path())[1].turns:
        return lambda launches: False
    return partial(memory_fit.fits, nodes=campaign.experiment.launches.nodes)


def _of_site(experiment: Experiment, python: str, stages: Stages) -> dict[str, Any]:
    """What an environment of the site holds, for campaign.json; empty without one."""
    if not python:
        return {}
    site_environment = site_python.ready(Path(python), experiment, stages.say)
    return {"python_versions": dict(site_environment.versions)}


def _check_place(experiment: Experiment) -> None:
    """Refuse what this machine, or the allocation that this process runs in, cannot measure."""
    _check_ranks(experiment)
    if experiment.on_cluster:
        jobs.check_allocation(os.environ, experiment.launches)


def _check_ranks(experiment: Experiment) -> None:
    launches = experiment.launches
    if machine := experiment.machine:
        check_rank_counts(launches.ranks, description.load(machine).cpus, machine)
    else:
        check_rank_counts(launches.ranks, launches.nodes * passthrough.cores())
