"""invoke tasks: each parses its flags and calls one function below. `./inv --list` shows them all.

A user's mistake is answered with one message on standard error and exit code 1, Ctrl-C with 130.
"""

import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

from invoke import Exit, task

from experiments.bench import command as bench_command
from experiments.bench import question as bench_question
from experiments.bench.tune import command as tune_command
from experiments.bench.tune import question as tune_question
from experiments.console.cli_errors import (
    choose,
    first,
    positional,
    told,
    whole,
    writable,
    writable_file,
)
from experiments.console.stages import Stages
from experiments.emulation import description, verdict
from experiments.execution import campaign
from experiments.execution.campaign import Request
from experiments.guests import command as emulated
from experiments.model import environment, quantities, spec
from experiments.model.environment import MPIS
from experiments.model.errors import ExperimentsError
from experiments.provision import passthrough, podman, test_runner
from experiments.provision.doctor import report as machine_doctor
from experiments.provision.engines import engine as engine_provision
from experiments.provision.images import image, seccomp
from experiments.provision.packages import system
from experiments.results import store as results
from experiments.results.unarchive import opened

RESULTS = Path("results")
FIGURES = Path("figures")


@task(
    help={
        "yes": "install what the system lacks without asking",
        "out": "results folder (default: results/quick-<time>)",
        "figures": "folder for figures and report (default: figures/<campaign>)",
    }
)
@told
def paper(context, yes=False, out="", figures=""):
    """
    The main job: set up, build the image, measure host against Docker, draw the figures.

    Installs what is missing of the system (with root and apt, after saying so), runs the quick
    campaign (direct, mpi and pickle over the same arrays) in randomised pairs and writes figures,
    tables and report.html. Without root the container arm is left out, and the figures say so.

    Example:  ./inv paper --yes
    """
    request = Request(writable("out", _new_folder("quick", out)), optional=True)
    target = _figures("figures", figures, request.out)
    stages = Stages()
    with stages.stage("system packages", spinner=False):
        lacking = system.ensure(stages.say, yes)
    if lacking:
        stages.say(str(lacking))
    for failure in campaign.run(spec.load("quick"), request, stages):
        stages.say(failure)
    with stages.stage("figures"):
        _draw(request.out, target, "pdf,svg,png")
        page = _report(request.out, target)
    stages.say(stages.summary())
    print(page)


@task(help={"marks": "pytest's -m: 'not container' leaves out what needs an engine"})
@told
def test(context, marks=""):
    """
    The test suite: ruff, mypy and pytest.

    Tests that start no ranks and no containers run on all cores at once, the others alone.

    Example:  ./inv test --marks 'not container and not browser'
    """
    test_runner.ensure_tools()
    test_runner.run(test_runner.commands(marks, passthrough.cores()))


@task(
    help={
        "json": "print JSON instead of a table",
        "tuning": "print when transport direct takes which way instead, and what changes that",
        "ranks": "how many ranks that is for (default: one per core)",
    }
)
@told
def doctor(context, json=False, tuning=False, ranks=""):
    """
    What this machine offers and lacks, and the one command that mends each lack.

    Examples:  ./inv doctor --json
               HBMCOMM_EAGER_BYTES=4KiB ./inv doctor --tuning --ranks 64
    """
    if tuning:
        count = quantities.parse_ranks(ranks)[0] if ranks else max(2, passthrough.cores())
        print(machine_doctor.tuning_table(count), end="")
        return
    found = machine_doctor.findings()
    print(machine_doctor.to_json(found) if json else machine_doctor.to_table(found), end="")


@task(
    help={
        "base": "an image's name, 'bootstrap', or 'auto': the registry where one answers",
        "mpi": "openmpi, mpich or impi",
        "engine": "docker (default) or podman",
    }
)
@told
def build(context, base="auto", mpi="openmpi", engine="docker"):
    """
    The harness image, rebuilt only when something that goes into it has changed.

    Podman takes the very image of Docker, where that answers.

    Example:  ./inv build --base bootstrap --mpi mpich
    """
    choose("engine", engine, environment.ENGINES)
    choose("mpi", mpi, MPIS)
    stages = Stages()
    running, ensure = {
        "docker": (engine_provision.running, image.ensure),
        "podman": (podman.running, podman.ensure_image),
    }[engine]
    with running() as client, stages.stage("image"):
        found = ensure(client, base, mpi, stages.say)
    seccomp.ensure()
    print(found.tag)


@task(
    help={
        "experiment": "a name in experiments/catalogue, or a .toml file (default: quick)",
        "env": "of host,userland,docker,podman,charliecloud,apptainer, or all that can be had; or "
        "in an emulated machine: vm:MACHINE, vm-docker:MACHINE",
        "profiles": "of containers: default,tuned,privileged (default: the experiment's)",
        "layouts": "of containers: one,per-rank,isolated (default: the experiment's)",
        "ranks": "rank counts: 2,4",
        "sizes": "bytes per rank: 1KiB:64MiB, 1KiB:64MiB:4 (factor 4) or 1KiB,1MiB",
        "blocks": "paired repetitions",
        "out": "results folder (default: results/<experiment>-<time>)",
        "resume": "complete the campaign in --out (default: the newest), as it was begun",
        "dry_run": "print every command, how long and how much memory; start nothing",
        "emulate_hbw": "emulate HBM on ordinary memory where there is none; results say so",
        "mpi": "of openmpi,mpich,impi (default: the experiment's)",
        "external": "references in the same blocks: IMB, a C benchmark (with --mpi impi); threads, "
        "multiprocessing: Python without an MPI",
        "base": "base image, as for build",
        "seed": "of every random order (default: drawn, and stored)",
    }
)
@told
def run(
    context,
    experiment="",
    env="",
    profiles="",
    layouts="",
    ranks="",
    sizes="",
    blocks="",
    out="",
    resume=False,
    dry_run=False,
    emulate_hbw=False,
    mpi="",
    external="",
    base="",
    seed="",
):
    """
    A campaign: randomised, paired blocks of launches into a results folder.

    Ctrl-C ends the launch under way and keeps those that finished; --resume goes on.

    Examples:  ./inv run --experiment docker --ranks 2,4 --blocks 10
               ./inv run --env host,docker --profiles all --layouts one,isolated --mpi all
               ./inv run --experiment memory --env host --sizes 1KiB:16MiB --dry-run
               ./inv run --experiment placement --env vm:knl-snc4-flat --sizes 1MiB --blocks 1
               ./inv run --resume --out results/docker-20260102-030405
    """
    if resume:
        given = (experiment, env, profiles, layouts, ranks, sizes, blocks, mpi, external, base)
        if any(given) or seed or emulate_hbw:
            raise ExperimentsError("--resume goes on as the campaign began; drop the other flags")
        folder = Path(out) if out else _newest()
        if dry_run:
            lines = campaign.dry_resume(folder)
            print("\n".join(lines) or f"the campaign in {folder} is complete; nothing to start")
            return
        failures = campaign.resume(folder, Stages())
        print(folder)
        _tell(failures, folder)
        return
    chosen = spec.restrict(
        spec.load(experiment or "quick"),
        environments=env,
        profiles=profiles,
        layouts=layouts,
        mpis=mpi,
        external=external,
        ranks=ranks,
        sizes=sizes,
        blocks=whole("blocks", blocks, 1),
        emulate_hbw=emulate_hbw,
    )
    folder = _new_folder(chosen.name, out)
    request = Request(folder, base or "auto", whole("seed", seed, 0), optional=env == "all")
    if dry_run:
        print("\n".join(campaign.dry_run(chosen, request)))
        for line in campaign.expected(chosen):
            Stages().say(line)
        return
    writable("out", folder)
    failures = campaign.run(chosen, request, Stages())
    print(folder)
    _tell(failures, folder)


@task(
    help={
        "machine": "its name, or the path of a .toml file (left out: lists those there are)",
        "check": "hold what it shows against its description, and memory against its kinds",
        "line": "run a shell line in it instead of giving a shell",
        "mpi": "openmpi, mpich or impi: whose image the guest is made of",
        "base": "base image, as for build",
        "yes": "install what the system lacks without asking",
    }
)
@told
def vm(context, machine="", check=False, line="", mpi="openmpi", base="auto", yes=False):
    """
    An emulated machine with HBM nodes: a shell in its guest, one command there, or a check.

    The guest is made of the harness image, has an engine of its own and forgets everything at its
    end. With --check, the exit code is 1 where something is not as its description says.

    Examples:  ./inv vm
               ./inv vm --machine knl-snc4-flat
               ./inv vm --machine xeon-max-flat-snc4 --check
               ./inv vm --machine hbm-as-dax --line 'numactl -H; ls -l /dev/dax*'
    """
    choose("mpi", mpi, MPIS)
    if check and line:
        raise ExperimentsError("--check and --line are two things: leave out one of them")
    if not machine:
        if check or line:
            raise ExperimentsError(
                "--check and --line need --machine; ./inv vm lists what there is"
            )
        print(emulated.machines(), end="")
        return
    described = description.load(machine)  # a typo is told before anything is installed
    stages = Stages()
    lacking = system.ensure(stages.say, yes, (*system.PACKAGES, *system.EMULATION))
    if lacking:
        stages.say(str(lacking))
    if check:
        found = emulated.check(machine, mpi, base, stages)
        print(verdict.to_table(found), end="")
        if not all(row.ok for row in found):
            raise ExperimentsError(f"{described.name} is not what its description says")
        return
    code = (
        emulated.run(machine, line, mpi, base, stages)
        if line
        else emulated.shell(machine, mpi, base, stages)
    )
    if code:
        raise Exit(code=code)


@task(
    help={
        "ranks": "rank counts: 2,4 (default: one per core, 16 at most)",
        "sizes": "bytes per rank, as for run (default: 8:16MiB:8)",
        "ops": "Allreduce,Bcast, ... or all (default: Bcast,Gather,Allreduce)",
        "peers": "of openmpi,mpich,impi,pickle,gloo (default: all that can be had)",
        "peers-tuned": "each MPI in all settings known to make it faster; its best counts per cell",
        "forms": "of plain,persistent,nonblocking (default: plain,persistent)",
        "against": "a checkout or installed tree of another build of hbmcomm, to compare with",
        "private": "over ordinary NumPy arrays instead of arrays of the arena",
        "cadence": "isolated (default: synchronised before each operation) or streaming",
        "blocks": "launches of each MPI and setting (default: 6, the fewest with an interval)",
        "tune": "measure the thresholds of transport direct here and propose a table; takes "
        "--ranks (one number, default: 2), --blocks, --out, --seed and --json",
        "out": "results folder (default: results/bench-<time>, of --tune: results/tune-<time>)",
        "figures": "folder for the figures (default: figures/bench-<time>)",
        "seed": "of every random order (default: drawn, and stored)",
        "json": "print JSON instead of tables",
        "results": "print a stored bench again, and measure nothing; takes --json",
    }
)
@told
def bench(
    context,
    ranks="",
    sizes="",
    ops="",
    peers="",
    peers_tuned=False,
    forms="",
    against="",
    private=False,
    cadence="",
    blocks="",
    tune=False,
    out="",
    figures="",
    seed="",
    json=False,
    results="",
):
    """
    hbmcomm against Open MPI, MPICH, Intel MPI, pickle and gloo on this machine.

    All MPIs are alive at the same time and take turns; each measures itself and hbmcomm over the
    same buffers, and ratios are paired within it. Ctrl-C shows what there is.

    With --tune no peer takes part: each threshold of transport direct (./inv doctor --tuning) is
    tried on both sides of its value. What is certainly faster on this machine comes as a table and
    as `export HBMCOMM_...` lines. About two minutes; tune for the number of ranks that you run.

    Examples:  ./inv bench
               ./inv bench --ops Allreduce --sizes 1KiB:16MiB:4
               ./inv bench --ranks 2,4 --peers openmpi,pickle --private --json
               ./inv bench --peers-tuned --ops all --forms plain,persistent,nonblocking
               ./inv bench --peers openmpi --against ../hbmcomm-0.1
               ./inv bench --results results/bench-20260102-030405
               ./inv bench --tune --ranks 4
    """
    if results:
        bench_command.show(Path(results), json)
        return
    if tune:
        others = {
            "--ops": ops,
            "--sizes": sizes,
            "--peers": peers,
            "--peers-tuned": peers_tuned,
            "--forms": forms,
            "--against": against,
            "--private": private,
            "--cadence": cadence,
            "--figures": figures,
        }
        asked = tune_question.ask(passthrough.cores(), ranks, whole("blocks", blocks, 1), others)
        folder, stages = writable("out", _new_folder("tune", out)), Stages()
        tune_command.run(asked, folder, whole("seed", seed, 0), stages, json)
        stages.say(str(folder))
        return
    question = bench_question.ask(
        passthrough.cores(),
        operations=ops,
        sizes=sizes,
        ranks=ranks,
        peers=peers,
        cadence=cadence,
        private=private,
        blocks=whole("blocks", blocks, 1),
        forms=forms,
        tuned=peers_tuned,
        against=against,
    )
    folder = writable("out", _new_folder("bench", out))
    target = _figures("figures", figures, folder)
    stages = Stages()
    bench_command.run(question, folder, whole("seed", seed, 0), stages, json)
    with stages.stage("figures"):
        written = _draw(folder, target, "pdf,svg,png")
    stages.say("\n".join(str(path) for path in (folder, *written)))


@task(
    help={
        "results": "results folder or archive (default: the newest folder)",
        "out": "folder for the files (default: figures/<campaign>)",
        "format": "figure formats: pdf,svg,png",
    },
    positional=first("plot", "results"),
)
@told
def plot(context, results=None, out="", format="pdf,svg,png"):
    """
    Figures and tables as a paper takes them, from a results folder or an archive alone.

    Titles and notes stand in a .caption.txt beside each figure, not in it; its font is embedded.

    Examples:  ./inv plot --results results/quick-20260102-030405 --format svg
               ./inv plot quick-20260102-030405.tar.xz
    """
    with _opened(results) as folder:
        target = _figures("out", out, folder)
        with Stages().stage("figures"):
            written = _draw(folder, target, format)
    print(*written, sep="\n")


@task(
    help={
        "results": "results folder or archive (default: the newest folder)",
        "out": "folder for report.html (default: figures/<campaign>)",
    },
    positional=first("report", "results"),
)
@told
def report(context, results=None, out=""):
    """
    One self-contained HTML page: answers, figures, tables, machine and warnings.

    Examples:  ./inv report --out /tmp/page
               ./inv report quick-20260102-030405.tar.xz
    """
    from plots.html.report import place  # matplotlib takes a second that other tasks need not pay

    with _opened(results) as folder:
        target = writable_file("out", place(Path(out) if out else FIGURES / folder.name))
        with Stages().stage("report"):
            page = _report(folder, target)
    print(page)


@task(
    help={
        "results": "results folder (default: the newest)",
        "out": "file to write, *.tar.xz (default: <campaign>.tar.xz)",
        "data": "leave out figures and report, which can be made of the rest",
    },
    positional=first("archive", "results"),
)
@told
def archive(context, results=None, out="", data=False):
    """
    A campaign as one file to hand over: raw data, logs, environment, figures, report, checksums.

    The same campaign gives the same file. report, plot, export and compare take it as it is; how
    to read it without this program is in docs/results-format.md, which is in the archive as well.

    Examples:  ./inv archive results/quick-20260102-030405
               ./inv archive --data --out docs/data/docker.tar.xz
    """
    from experiments.results import archive as archives  # as above

    folder = Path(results) if results else _newest()
    target = archives.target(folder, Path(out) if out else None)
    writable_file("out", target)
    stages = Stages()
    with tempfile.TemporaryDirectory(prefix="hbmcomm-figures-") as place:
        if not data:
            with stages.stage("figures"):
                _draw(folder, Path(place), "pdf,svg,png")
                if (folder / "campaign.json").is_file():  # a bench has no page
                    _report(folder, Path(place))
        with stages.stage("archive"):
            digest = archives.archive(folder, Path(place), target)
    print(f"{digest}  {target}")


@task
@told
def docs(context):
    """
    The pages: refresh what is made of something else, then build them into build/site.

    Figures, measured sentences and tables come from the campaigns in docs/data, fields from
    docs/schemas. A dead link is an error. The site loads nothing from the network.

    Example:  ./inv docs
    """
    from plots import documentation, site  # as above

    test_runner.ensure_tools()
    stages = Stages()
    with stages.stage("docs"):
        written = documentation.refresh(Path())
    with stages.stage("site"):
        page = site.build(Path())
    print(*written, page, sep="\n")


@task(
    help={
        "first": "results folder or archive of the first campaign",
        "second": "of the second; ratios are its times over the first's",
        "other_mpi": "compare although the campaigns hold different MPIs",
        "json": "print JSON instead of tables",
    },
    positional=positional("compare", "first", "second"),
)
@told
def compare(context, first, second, other_mpi=False, json=False):
    """
    Two campaigns side by side: what differs about them first, their results second.

    Example:  ./inv compare results/quick-20260102-030405 results/quick-20260203-040506
    """
    from plots.tables import comparison  # pandas takes a second that other tasks need not pay

    with opened(Path(first)) as one, opened(Path(second)) as other:
        comparison.show(one, other, other_mpi, json, Stages())


@task(
    help={
        "results": "results folder or archive (default: the newest folder)",
        "format": "osu (tables as OSU prints them), csv or parquet",
        "out": "file to write (default: standard output; parquet needs a file)",
        "samples": "every sample instead of launch medians; csv and parquet",
    },
    positional=first("export", "results"),
)
@told
def export(context, results=None, format="csv", out="", samples=False):
    """
    A campaign's numbers in a format that others read: OSU's tables, CSV or Parquet.

    Examples:  ./inv export --format osu
               ./inv export --results results/quick-20260102-030405 --format parquet --out q.parquet
    """
    from experiments.analysis import export as exports  # as above
    from experiments.analysis.reading import load

    choose("format", format, exports.FORMATS)
    target = writable_file("out", Path(out)) if out else None
    with _opened(results) as folder, Stages().stage("export"):
        exports.export(load(folder), format, target, samples)
    if out:
        print(out)


def _tell(failures: list[str], folder: Path) -> None:
    """End with exit code 1 where launches failed; the others are measured and stay."""
    if failures:
        raise ExperimentsError(
            "\n".join(failures) + f"\n{len(failures)} launches failed in containers; the rest is "
            f"measured. To try them again: ./inv run --resume --out {folder}"
        )


def _opened(results: str | None) -> AbstractContextManager[Path]:
    """The results folder that was asked for, an archive's included, or the newest."""
    return opened(Path(results) if results else _newest())


def _draw(folder: Path, out: Path, formats: str) -> list[Path]:
    from plots.draw import draw  # matplotlib takes a second that other tasks need not pay

    return draw(folder, out, tuple(formats.split(",")))


def _report(folder: Path, out: Path) -> Path:
    from plots.html.report import report  # as above

    return report(folder, out)


def _new_folder(name: str, out: str) -> Path:
    """A folder for a new campaign: the one asked for, or one named after the time."""
    return Path(out) if out else RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _figures(flag: str, asked: str, results: Path) -> Path:
    """The folder for a campaign's figures: the one asked for, or one named after its results."""
    return writable(flag, Path(asked) if asked else FIGURES / results.name)


def _newest() -> Path:
    """The campaign begun last."""
    found = sorted(RESULTS.glob("*/campaign.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise results.ResultsError(
            f"there is no campaign in {RESULTS}/; measure one: ./inv run, or name one with "
            "--results or --out"
        )
    return found[-1].parent
