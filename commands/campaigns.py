"""`paper` and `run`: campaigns, from flags to a results folder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from commands import clusters
from commands.flags import whole_number
from commands.folders import new_figures, new_results, newest, writable
from commands.stored import draw_and_report
from experiments.catalogue import spec
from experiments.cluster import jobs, sites
from experiments.console import Stages, print_text
from experiments.driver import campaign, campaign_file, overview
from experiments.driver.campaign_file import Request
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment
from experiments.provision import system


def paper(yes: bool, out: str, figures: str) -> None:
    """Install what the system lacks, run the quick campaign, draw figures and report."""
    request = Request(writable("out", new_results("quick", out)), optional=True)
    target = new_figures("figures", figures, request.out)
    stages = Stages()
    with stages.stage("system packages", spinner=False):
        lacking = system.ensure(stages.say, yes)
    if lacking:
        stages.say(lacking)
    for failure in campaign.run(spec.load("quick"), request, stages):
        stages.say(failure)
    with stages.stage("figures"):
        page = draw_and_report(request.out, target)
    stages.say(stages.summary())
    print_text(page)


@dataclass(frozen=True)
class Choices:
    """What the flags of `run` choose; "" is the default of the experiment, campaign or site.

    Attributes:
        flags: values by flag.
    """

    flags: Mapping[str, str]
    emulate_hbw: bool = False

    def but(self, **flags: str) -> "Choices":
        """The choices with other values of some flags."""
        return replace(self, flags={**self.flags, **flags})

    def experiment(self) -> Experiment:
        """The experiment, restricted."""
        given = self.flags
        return spec.restrict(
            spec.load(given["experiment"] or "quick"),
            operations=given["ops"],
            environments=given["env"],
            mpis=given["mpi"],
            blocks=whole_number("blocks", given["blocks"], 1),
            nodes=whole_number("nodes", given["nodes"], 1),
            emulate_hbw=self.emulate_hbw,
            profiles=given["profiles"],
            layouts=given["layouts"],
            kinds=given["kinds"],
            ranks=given["ranks"],
            sizes=given["sizes"],
            external=given["external"],
            launcher=given["launcher"],
        )

    def request(self, folder: Path, site: str = "") -> Request:
        """A request for its campaign in a folder; `--env all` leaves out what cannot be had."""
        given, seed = self.flags, whole_number("seed", self.flags["seed"], 0)
        python = given["python"] and str(Path(given["python"]).absolute())
        optional, base = given["env"] == "all", given["base"] or "auto"
        return Request(folder, base, seed, optional=optional, site=site, python=python)

    def words(self, site: str) -> list[str]:
        """The flags of `./inv run` that choose the same in a job of a site."""
        name = self.flags["experiment"]
        if name.endswith(".toml"):
            name = str(Path(name).absolute())
        given = self.but(experiment=name, site=site).flags
        words = [word for flag, text in given.items() if text for word in (f"--{flag}", text)]
        return [*words, *(["--emulate-hbw"] if self.emulate_hbw else [])]


def list_experiments() -> None:
    """Print all experiments: what each asks, compares and needs, and how long it takes here."""
    for experiment in overview.every(campaign.this_host()):
        name, question, arms, cells, launches, time, needs = experiment.row()
        print_text(f"{name}: {question}")
        print_text(f"    {arms}; {cells} cells, {launches} launches, up to {time}; needs: {needs}")
    print_text("Times are for this machine. To measure one: ./inv run --experiment NAME")


def start(choices: Choices, out: str, dry_run: bool, time: str) -> None:
    """Begin a campaign, or print what it would start; on a cluster, submit it.

    How long it takes and how much memory it needs goes to standard error.

    Args:
        time: limit of its job.
    """
    experiment, given = choices.experiment(), choices.flags
    folder, name = new_results(experiment.name, out), ""
    if experiment.on_cluster:
        name, site = sites.load(given["site"], sites.path())
        launcher, nodes = given["launcher"] or site.launcher, given["nodes"] or str(site.nodes)
        choices = choices.but(launcher=launcher, nodes=nodes)
        experiment = choices.experiment()
        folder = Path(site.shared or Path.cwd()) / folder  # which all nodes see
    elif time or any(given[flag] for flag in ("site", "nodes", "launcher")):
        raise ExperimentsError(
            "--site, --nodes, --launcher and --time are for an allocation: add --env slurm"
        )
    request = choices.request(folder, name)
    if experiment.on_cluster and not jobs.held(os.environ):
        clusters.start(experiment, request, time, choices.words(name), dry_run)
        return
    if dry_run:
        planned = campaign.plan(experiment, request)
        print_text("\n".join(campaign.preview(planned, planned.launches)))
        for line in (*campaign.expected(planned), *campaign.lacking(planned)):
            Stages().say(line)
        return
    writable("out", folder)
    _finish(campaign.run(experiment, request, Stages()), folder)


def resume(out: str, choices: Choices, dry_run: bool, time: str = "") -> None:
    """Complete a campaign as it was begun, or print what that would start.

    Args:
        out: its results folder; "": the newest.
        choices: other flags than those that confirm what programs run do not go with --resume.
        time: limit of its new job, where it was begun in one.
    """
    others = [text for flag, text in choices.flags.items() if flag not in campaign_file.AGAIN]
    if any((*others, choices.emulate_hbw)):
        raise ExperimentsError("--resume goes on as the campaign began; drop the other flags")
    again = {flag: choices.flags[flag] for flag in campaign_file.AGAIN}
    again["python"] = again["python"] and str(Path(again["python"]).absolute())
    folder = Path(out) if out else newest()
    if clusters.resume(folder, time, dry_run, again):
        return
    if dry_run:
        begun = campaign_file.read(folder, **again)
        lines = campaign.preview(begun, begun.unfinished())
        print_text("\n".join(lines) or f"the campaign in {folder} is complete; nothing to start")
        return
    _finish(campaign.resume(folder, Stages(), **again), folder)


def _finish(failures: list[str], folder: Path) -> None:
    """Print the folder; exit code 1 where launches failed, the others are measured and stay."""
    print_text(folder)
    if failures:
        raise ExperimentsError(
            "\n".join(failures) + f"\n{len(failures)} launches failed in containers; the rest is "
            f"measured. To try them again: ./inv run --resume --out {folder}"
        )
