"""From a request to a finished results folder: what `invoke run` calls.

Puts together what other modules know; parses no flags and starts no launch itself.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import hbmcomm
from experiments.cluster import allocation, sites
from experiments.cluster.sites import Site
from experiments.console.stages import Stages
from experiments.emulation import description
from experiments.execution import backends, campaign_file, forecast, inventory, same_machine
from experiments.execution.backends import Backends
from experiments.execution.campaign_file import Campaign
from experiments.execution.cleanup import watchdog
from experiments.execution.cleanup.watchdog import Watch
from experiments.execution.commands import Commands
from experiments.execution.forecast import Host
from experiments.execution.launching import LaunchContext
from experiments.execution.runner import Runner
from experiments.model.experiment import Experiment
from experiments.model.launch import Launch
from experiments.model.quantities import check_rank_counts
from experiments.programs.machine import facts
from experiments.provision import passthrough, site_python
from experiments.results import store


@dataclass(frozen=True)
class Request:
    """What a campaign needs beside its experiment.

    Attributes:
        out: the results folder, to begin or to complete.
        base: base image: "auto", "bootstrap" or an image's name.
        site: the cluster, as sites.toml names it; "" where there is none.
        python: folder of an environment that the site provides for arms without a container.
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
    site: str = ""
    python: str = ""


def run(experiment: Experiment, request: Request, stages: Stages) -> list[str]:
    """Measure a new campaign into request.out; what failed in a container, one message each.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    _check_place(experiment)
    store.refuse_existing(request.out)
    notes = {**request.notes, **_of_site(experiment, request.python, stages)}
    with (
        watchdog.watching(request.out, stages.say) as watch,
        backends.ready(
            *(experiment, request.base, request.optional, stages),
            *(_site(experiment, request.site), request.python),
        ) as found,
    ):
        for name, why in found.missing.items():
            stages.say(f"{name}: {why}")
        left = found.without_missing(experiment)
        campaign = campaign_file.make(
            left, request.seed, request.base, request.variables, request.site, request.python
        )
        for line in expected(campaign):
            stages.say(line)
        store.create(request.out, {**notes, **campaign.header(found)})
        packages = inventory.inventory(left, found, request.python)
        store.write_json(request.out / inventory.NAME, packages)
        return _measure(campaign, request.out, found, watch, stages)


def resume(out: Path, stages: Stages) -> list[str]:
    """Complete the campaign in a results folder as it was begun; what failed in a container.

    Nothing is started for a campaign that is complete.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    campaign = campaign_file.read(out)
    if not campaign.unfinished(out):
        stages.say(f"the campaign in {out} is complete; draw it: ./inv report --results {out}")
        return []
    _check_place(campaign.experiment)
    same_machine.refuse_other_machine(campaign, out)
    same_machine.refuse_other_code(campaign, out)
    of_site = _of_site(campaign.experiment, campaign.python, stages)
    same_machine.refuse_other_software(campaign, of_site, out)
    site = _site(campaign.experiment, campaign.site)
    with (
        watchdog.watching(out, stages.say) as watch,
        backends.ready(
            *(campaign.experiment, campaign.base, False, stages, site, campaign.python)
        ) as found,
    ):
        same_machine.refuse_other_guest(campaign, found, out)
        return _measure(campaign, out, found, watch, stages)


def plan(experiment: Experiment, request: Request) -> Campaign:
    """The campaign that run() would measure with this seed, 0 where none is given."""
    _check_ranks(experiment)
    where = request.site, request.python
    return campaign_file.plan(experiment, request.seed, request.base, *where)


def dry_run(campaign: Campaign, out: Path) -> list[str]:
    """Every command that run() would start for a plan, as shell lines.

    Starts nothing. A container's image has its name here instead of its digest, a guest's agent the
    name of its machine.
    """
    return _lines(campaign, campaign.launches, out)


def dry_resume(out: Path) -> list[str]:
    """Every command that resume() would start, as shell lines, in its order."""
    campaign = campaign_file.read(out)
    return _lines(campaign, campaign.unfinished(out), out)


def expected(campaign: Campaign) -> list[str]:
    """How long a campaign takes here and how much memory it needs, in lines for a user.

    Of an emulated machine nothing: its speed is QEMU's.
    """
    if campaign.experiment.machine:
        return []
    nodes = hbmcomm.topology().nodes
    return forecast.lines(
        forecast.forecast(campaign.blocks, _host()),
        facts.available_memory(),
        {node.id: node.total_bytes for node in nodes if node.is_hbm},
    )


def seconds(campaign: Campaign, out: Path) -> float:
    """How long the launches take that a results folder lacks, were the nodes as this machine."""
    finished = store.finished(out)
    host = _host()
    left = [
        replace(block, launches=tuple(x for x in block.launches if x.name not in finished))
        for block in campaign.blocks
    ]
    return forecast.forecast(left, host).seconds


def _host() -> Host:
    return Host(passthrough.cores(), facts.copy_rate(), facts.last_level_cache())


def _lines(campaign: Campaign, launches: list[Launch], out: Path) -> list[str]:
    commands = Commands(campaign, Backends())
    return [
        commands(each).command(each, (out / "incoming" / each.name).absolute()).shell()
        for each in launches
    ]


def _measure(
    campaign: Campaign, out: Path, found: Backends, watch: Watch, stages: Stages
) -> list[str]:
    asked = campaign.experiment.launches
    gone = {
        each: found.guests[each.machine, flavour].death
        for each in asked.environments
        if each.machine
        for flavour in asked.mpis
    }
    owner, commands = passthrough.owner(), Commands(campaign, found)
    context = LaunchContext(out, commands, owner, found.clients, gone)
    title, launches = campaign.experiment.title, len(campaign.launches)
    stages.say(f"measuring {title!r} into {out}: {launches} launches")
    try:
        with (
            stages.stage("measurement", spinner=False),
            watch.campaign(campaign.id, found.engines),
        ):
            return Runner(context, campaign.blocks).run()
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


def _site(experiment: Experiment, name: str) -> Site:
    return sites.load(name, sites.path())[1] if experiment.on_cluster else Site()


def _of_site(experiment: Experiment, python: str, stages: Stages) -> dict[str, Any]:
    """What an environment of the site holds, for campaign.json; empty without one."""
    if not python:
        return {}
    found = site_python.ready(Path(python), experiment, stages.say)
    return {"python_versions": dict(found.versions)}


def _check_place(experiment: Experiment) -> None:
    """Refuse what this machine, or the allocation that this process runs in, cannot measure."""
    _check_ranks(experiment)
    if experiment.on_cluster:
        allocation.check(allocation.held(os.environ), experiment.launches)


def _check_ranks(experiment: Experiment) -> None:
    launches = experiment.launches
    if machine := experiment.machine:
        check_rank_counts(launches.ranks, description.load(machine).cpus, machine)
    else:
        check_rank_counts(launches.ranks, launches.nodes * passthrough.cores())
