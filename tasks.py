"""invoke tasks: each parses its flags and calls one function of commands/.

A user's mistake ends in one message on standard error and exit code 1, Ctrl-C in 130. `run` and
`bench`, which have the most flags, are in files of commands with their names.
"""

from commands import campaigns, emulation, models, project, stored
from commands.bench import bench
from commands.exits import command
from commands.flags import leading, leading_path, positional
from commands.run import run
from experiments.model.environment import RATE

__all__ = ["bench", "run"]  # invoke finds them here


@command(
    help={
        "yes": "install what the system lacks without asking",
        "out": "results folder (default: results/quick-<time>)",
        "figures": "folder for figures and report (default: figures/<campaign>)",
    }
)
def paper(context, yes=False, out="", figures=""):
    """The main job: set up, build the image, measure host against Docker, draw the figures.

    Asks and installs what is missing of the system (with root and apt), runs experiment `quick`
    (direct, mpi and pickle over the same arrays) in randomised pairs and writes figures, tables and
    report.html. Without an engine the container arm is left out, and the figures say so. The
    paper's own experiment, which takes hours: ./inv run --experiment paper.

    Example:  ./inv paper --yes
    """
    campaigns.paper(yes, out, figures)


@command(
    help={
        "marks": "pytest's -m: 'not container' leaves out what needs an engine",
        "all": "run the long proofs of rare events and other packages' suites too (about an hour)",
    }
)
def test(context, marks="", all=False):
    """The test suite: ruff, mypy and pytest.

    Tests that start containers or look at the whole machine run one after the other, the others
    beside each other.

    Examples:  ./inv test --marks 'not container and not browser'
               ./inv test --all --marks rare
    """
    project.test(marks, all)


@command(
    help={
        "json": "print JSON instead of a table",
        "tuning": "print the thresholds of transport direct, and the variable that sets each",
        "ranks": "with --tuning: how many ranks (default: one per core)",
    }
)
def doctor(context, json=False, tuning=False, ranks=""):
    """What this machine offers and lacks, and the one command that fixes each gap.

    Examples:  ./inv doctor --json
               HBMCOMM_EAGER_BYTES=4KiB ./inv doctor --tuning --ranks 64
    """
    project.doctor(json, tuning, ranks)


@command(
    help={
        "out": "folder for them",
        "arch": "x86_64, aarch64, or both with a comma",
    }
)
def wheels(context, out="dist", arch="x86_64,aarch64"):
    """Wheels for any Python from 3.11 on and any Linux with glibc 2.28 or newer, and the sources.

    zig compiles them, for Arm as well; auditwheel, abi3audit and twine check them. pip installs all
    of these the first time. They hold the C++ part of hbmcomm.torch for torch 2.10 to 2.15: torch's
    headers are fetched once, and apt gives libstdc++'s (Debian 12, Ubuntu 24.04). No upload.

    Example:  ./inv wheels --out dist --arch x86_64
    """
    project.wheels(out, arch)


@command(
    help={
        "base": "an image's name, 'bootstrap', or 'auto': the registry where one answers",
        "mpi": "openmpi, mpich or impi",
        "engine": "docker (default) or podman",
    }
)
def build(context, base="auto", mpi="openmpi", engine="docker"):
    """The harness image, rebuilt only when something that goes into it has changed.

    Podman uses the image of Docker, if a Docker engine is running.

    Example:  ./inv build --base bootstrap --mpi mpich
    """
    project.build(base, mpi, engine)


@command(
    help={
        "machine": "its name, or the path of a .toml file (left out: lists those there are)",
        "check": "compare the guest with its description, and its memory with its kinds",
        "line": "run a shell line in it instead of giving a shell",
        "mpi": "openmpi, mpich or impi: whose image the guest is made of",
        "base": "base image, as for build",
        "yes": "install what the system lacks without asking",
    }
)
def vm(context, machine="", check=False, line="", mpi="openmpi", base="auto", yes=False):
    """An emulated machine with HBM nodes: a shell in its guest, one command there, or a check.

    The guest is made of the harness image, has an engine of its own and forgets everything at its
    end. With --check, the exit code is 1 where something is not as its description says.

    Examples:  ./inv vm
               ./inv vm --machine knl-snc4-flat
               ./inv vm --machine xeon-max-flat-snc4 --check
               ./inv vm --machine hbm-as-dax --line 'numactl -H; ls -l /dev/dax*'
    """
    emulation.vm(machine, check, line, mpi, base, yes)


@command(
    help={
        "action": "up, status (default), job, shell or down",
        "count": "for up: number of hosts (default: 2)",
        "rate": "of each link in each direction, as tc writes it: 100mbit (default: 1gbit)",
        "delay": "of each link in each direction: 0.5ms, 200us (default: none)",
        "name": "of the set of hosts, where several are up",
        "host": "for shell: n1 (default), n2 ...",
        "line": "for job: the program of each rank, and its arguments",
        "ranks": "for job: number of ranks, spread over the hosts in blocks (default: one on each)",
        "mpi": "for job: openmpi, mpich or impi",
    },
    positional=leading("hosts", "action", "count"),
)
def hosts(
    context,
    action=None,
    count=None,
    rate=RATE,
    delay="",
    name="default",
    host="",
    line="",
    ranks="",
    mpi="openmpi",
):
    """Emulated hosts on this machine: network namespaces on a switch, with links of a rate.

    Each host has a network, a name, a /dev/shm and PIDs of its own; all have this machine's files
    and share its CPUs. They stay until `down`, which ends all that runs on them. Needs root.

    Examples:  ./inv hosts up 4 --rate 1gbit --delay 0.5ms
               ./inv hosts job --ranks 8 --mpi mpich --line 'python program.py'
               ./inv hosts shell --host n2
               ./inv hosts status
               ./inv hosts down
    """
    flags = {"count": count or "", "rate": rate, "delay": delay, "name": name}
    flags |= {"host": host, "line": line, "ranks": ranks, "mpi": mpi}
    emulation.hosts(action or "status", flags)


@command(
    help={
        "results": "results folder or archive (default: the newest folder)",
        "out": "folder for the files (default: figures/<campaign>)",
        "format": "figure formats: pdf,svg,png",
    },
    positional=leading_path("plot", "results"),
)
def plot(context, results=None, out="", format="pdf,svg,png"):
    """Figures and tables as a paper takes them, from a results folder or an archive alone.

    Each figure has its title and its notes in a .caption.txt; its font is embedded.

    Examples:  ./inv plot --results results/quick-20260102-030405 --format svg
               ./inv plot quick-20260102-030405.tar.xz
    """
    stored.plot(results, out, format)


@command(
    help={
        "results": "results folder or archive (default: the newest folder)",
        "out": "folder for report.html (default: figures/<campaign>)",
    },
    positional=leading_path("report", "results"),
)
def report(context, results=None, out=""):
    """One self-contained HTML page: answers, figures, tables, machine and warnings.

    Examples:  ./inv report --out /tmp/page
               ./inv report quick-20260102-030405.tar.xz
    """
    stored.report(results, out)


@command(
    help={
        "results": "results folder (default: the newest)",
        "out": "file to write, *.tar.xz (default: <campaign>.tar.xz)",
        "data": "leave out figures and report, which can be made of the rest",
    },
    positional=leading_path("archive", "results"),
)
def archive(context, results=None, out="", data=False):
    """A campaign as one file to hand over: raw data, logs, environment, figures, report, checksums.

    The same campaign gives the same file. report, plot, export and compare take it as it is; how
    to read it without this program is in docs/results-format.md, which is in the archive as well.
    Names of folders, users and hosts of the machine that measured become words, such as CHECKOUT.

    Examples:  ./inv archive results/quick-20260102-030405
               ./inv archive --data --out docs/data/docker.tar.xz
    """
    stored.archive(results, out, data)


@command(
    help={
        "results": "results folder or archive (default: the newest folder)",
        "out": "folder for the files (default: figures/<campaign>)",
        "what_if": "another machine's memory in place of this one's: knl, xeon-max or gh200 "
        "(default: all)",
        "network": "between nodes: 10gbit, 100gbit or 400gbit (default: all)",
        "nodes": "the most nodes of a scaling curve (default: 10000)",
    },
    positional=leading_path("model", "results"),
)
def model(context, results=None, out="", what_if="", network="", nodes=""):
    """Fit cost models to half of a campaign, test them on the other half, predict other machines.

    Prints parameters and errors, and draws measured and modelled times, and scaling curves. For a
    campaign of allreduces between hosts, the curves go up to --nodes hosts with the same links.

    Examples:  ./inv run --experiment model && ./inv model
               ./inv run --experiment between_hosts && ./inv model
               ./inv model docs/data/cores.json.xz --what-if knl --network 100gbit --nodes 10000
    """
    models.model(results, out, what_if, network, nodes)


@command()
def docs(context):
    """The pages: refresh what is made of something else, then build them into build/site.

    Figures, measured sentences and tables come from the campaigns in docs/data, fields from
    docs/schemas. A dead link is an error. The site loads nothing from the network.

    Example:  ./inv docs
    """
    project.docs()


@command(
    help={
        "first": "results folder or archive of the first campaign",
        "second": "results folder or archive of the second campaign; ratios are second / first",
        "other_mpi": "compare although the campaigns hold different MPIs",
        "json": "print JSON instead of tables",
    },
    positional=positional("compare", "first", "second"),
)
def compare(context, first, second, other_mpi=False, json=False):
    """Two campaigns side by side: what differs about them first, their results second.

    Example:  ./inv compare results/quick-20260102-030405 results/quick-20260203-040506
    """
    stored.compare(first, second, other_mpi, json)


@command(
    help={
        "results": "results folder or archive (default: the newest folder)",
        "format": "osu (tables as OSU prints them), csv, parquet or openmetrics",
        "out": "file to write (default: standard output; parquet needs a file)",
        "samples": "every sample instead of launch medians; csv and parquet",
    },
    positional=leading_path("export", "results"),
)
def export(context, results=None, format="csv", out="", samples=False):
    """A campaign's numbers in a format that others read: OSU's tables, CSV, Parquet, OpenMetrics.

    Examples:  ./inv export --format osu
               ./inv export --format openmetrics --out hbmcomm.prom
               ./inv export --results results/quick-20260102-030405 --format parquet --out q.parquet
    """
    stored.export(results, format, out, samples)
