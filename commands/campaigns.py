"""`paper` and `run`: campaigns, from flags to a results folder."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path

from commands import clusters
from commands.clusters import Place
from commands.flags import whole_number
from commands.folders import new_figures, new_results, newest, writable
from commands.stored import draw, write_report
from experiments.catalogue import spec
from experiments.console.stages import Stages
from experiments.execution import campaign
from experiments.execution.campaign import Request
from experiments.model.environment import CLUSTER
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment
from experiments.provision.packages import system


def paper(yes: bool, out: str, figures: str) -> None:
    """Install what the system lacks, run the quick campaign, draw figures and report."""
    request = Request(writable("out", new_results("quick", out)), optional=True)
    target = new_figures("figures", figures, request.out)
    stages = Stages()
    with stages.stage("system packages", spinner=False):
        lacking = system.ensure(stages.say, yes)
    if lacking:
        stages.say(str(lacking))
    for failure in campaign.run(spec.load("quick"), request, stages):
        stages.say(failure)
    with stages.stage("figures"):
        draw(request.out, target)
        page = write_report(request.out, target)
    stages.say(stages.summary())
    print(page)


@dataclass(frozen=True)
class Choices:
    """What the flags of `run` choose; "" is the default of the experiment or of the campaign.

    Attributes:
        name: the experiment's name in the catalogue, or its file.
        restrictions: parts of the experiment, by parameter of spec.restrict().
        python: folder of an environment of the site, for arms without a container.
    """

    name: str
    restrictions: Mapping[str, str]
    blocks: str
    emulate_hbw: bool
    base: str
    seed: str
    cluster: clusters.Flags = field(default_factory=clusters.Flags)
    python: str = ""

    def experiment(self) -> Experiment:
        """The experiment, restricted."""
        return spec.restrict(
            spec.load(self.name or "quick"),
            blocks=whole_number("blocks", self.blocks, 1),
            emulate_hbw=self.emulate_hbw,
            nodes=self.cluster.nodes,
            launcher=self.cluster.launcher,
            **self.restrictions,
        )

    def request(self, folder: Path, site: str = "") -> Request:
        """A request for its campaign in a folder; `--env all` leaves out what cannot be had."""
        seed = whole_number("seed", self.seed, 0)
        optional = self.restrictions["environments"] == "all"
        python = str(Path(self.python).absolute()) if self.python else ""
        base = self.base or "auto"
        return Request(folder, base, seed, optional=optional, site=site, python=python)

    def words(self, site: str) -> list[str]:
        """The flags of `./inv run` that choose the same in a job of a site."""
        name = str(Path(self.name).absolute()) if self.name.endswith(".toml") else self.name
        spelled = {"environments": "env", "mpis": "mpi"}
        values = {"experiment": name, "site": site, "blocks": self.blocks}
        values |= {spelled.get(key, key): text for key, text in self.restrictions.items()}
        values |= {"launcher": self.cluster.launcher, "nodes": str(self.cluster.nodes or "")}
        values |= {"base": self.base, "seed": self.seed, "python": self.python}
        given = [(f"--{flag}", text) for flag, text in values.items() if text]
        return [*chain.from_iterable(given), *(["--emulate-hbw"] if self.emulate_hbw else [])]


def cluster_flags(site: str, launcher: str, nodes: str, time: str) -> clusters.Flags:
    """What the flags for a cluster say."""
    return clusters.Flags(site, launcher, whole_number("nodes", nodes, 1), time)


def start(choices: Choices, out: str, dry_run: bool) -> None:
    """Begin a campaign, or print what it would start; on a cluster, submit it."""
    experiment = choices.experiment()
    folder = new_results(experiment.name, out)
    place = Place()
    if experiment.on_cluster:
        place, flags = clusters.of_site(choices.cluster)
        choices = replace(choices, cluster=flags)
        experiment, folder = choices.experiment(), place.folder(folder)
    elif any(asdict(choices.cluster).values()):
        raise ExperimentsError(
            "--site, --nodes, --launcher and --time are for an allocation: add --env slurm"
        )
    request = choices.request(folder, place.name)
    if place.submits:
        clusters.start(experiment, request, place, choices.words(place.name), dry_run)
        return
    if dry_run:
        _print_plan(experiment, request)
        return
    writable("out", folder)
    _finish(campaign.run(experiment, request, Stages()), folder)


def print_manifest(choices: Choices, image: str, out: str) -> None:
    """Print the MPIJob of a campaign, with workers for nodes."""
    given = choices.cluster
    if choices.restrictions["environments"] or given.site or given.launcher or given.time:
        raise ExperimentsError(
            "--mpijob runs in pods of its own: drop --env, --site, --launcher and --time"
        )
    pods = replace(
        choices,
        restrictions={**choices.restrictions, "environments": CLUSTER},
        cluster=replace(given, launcher="mpiexec"),
    )
    experiment = pods.experiment()
    request = pods.request(new_results(experiment.name, out))
    print(clusters.mpijob(experiment, request, image), end="")


def _print_plan(experiment: Experiment, request: Request) -> None:
    """Every command on standard output; how long and how much memory on standard error."""
    planned = campaign.plan(experiment, request)
    print("\n".join(campaign.dry_run(planned, request.out)))
    for line in campaign.expected(planned):
        Stages().say(line)


def resume(out: str, others: tuple[str | bool, ...], dry_run: bool, time: str = "") -> None:
    """Complete a campaign as it was begun, or print what that would start.

    Args:
        out: its results folder; "": the newest.
        others: values of the flags that do not go with --resume.
        time: limit of its new job, where it was begun in one.
    """
    if any(others):
        raise ExperimentsError("--resume goes on as the campaign began; drop the other flags")
    folder = Path(out) if out else newest()
    if clusters.resume(folder, time, dry_run):
        return
    if dry_run:
        lines = campaign.dry_resume(folder)
        print("\n".join(lines) or f"the campaign in {folder} is complete; nothing to start")
        return
    _finish(campaign.resume(folder, Stages()), folder)


def _finish(failures: list[str], folder: Path) -> None:
    """Print the folder; exit code 1 where launches failed, the others are measured and stay."""
    print(folder)
    if failures:
        raise ExperimentsError(
            "\n".join(failures) + f"\n{len(failures)} launches failed in containers; the rest is "
            f"measured. To try them again: ./inv run --resume --out {folder}"
        )
