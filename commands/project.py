"""`test`, `doctor`, `build`, `wheels` and `docs`: the project itself on this machine."""

from pathlib import Path

from commands.flags import check_choice
from experiments.console import Stages, print_text
from experiments.doctor import report
from experiments.model import environment, quantities
from experiments.model.environment import MPIS
from experiments.model.errors import ExperimentsError
from experiments.provision import engine as docker
from experiments.provision import image, passthrough, podman, seccomp, test_runner


def test(marks: str, rare: bool) -> None:
    """Install the tools of the tests, then run them; `rare`: the long proofs too."""
    test_runner.ensure_tools()
    test_runner.ensure_torch()
    test_runner.run(test_runner.commands(marks, passthrough.cores(), rare))


def doctor(json: bool, tuning: bool, ranks: str) -> None:
    """Print what this machine offers and lacks, or the thresholds of transport direct."""
    if (ranks and not tuning) or (json and tuning):
        raise ExperimentsError("--ranks is for --tuning, and --json for what this machine has")
    if tuning:
        count = quantities.parse_ranks(ranks)[0] if ranks else max(2, passthrough.cores())
        print(report.tuning_table(count), end="")
        return
    findings = report.findings()
    print(report.to_json(findings) if json else report.to_table(findings), end="")


def build(base: str, mpi: str, engine: str) -> None:
    """Make the harness image where it is missing or out of date; print its tag."""
    check_choice("engine", engine, environment.ENGINES)
    check_choice("mpi", mpi, MPIS)
    stages = Stages()
    running, ensure = {
        "docker": (docker.running, image.ensure),
        "podman": (podman.running, podman.ensure_image),
    }[engine]
    with running() as client, stages.stage("image"):
        made = ensure(client, base, mpi, stages.say)
    seccomp.ensure()
    print_text(made.tag)


def wheels(out: str, arch: str) -> None:
    """Make and check the project's distributions; print their paths."""
    from experiments.provision import release

    wanted = tuple(dict.fromkeys(arch.split(",")))
    for name in wanted:
        check_choice("arch", name, release.ARCHITECTURES)
    print_text(*map(str, release.make(Path(out), wanted, Stages())))


def docs() -> None:
    """Refresh and build the pages; print what was written."""
    from plots import documentation, site  # matplotlib takes a second that other tasks need not pay

    test_runner.ensure_tools()
    stages = Stages()
    with stages.stage("docs"):
        written = documentation.refresh(Path())
    with stages.stage("site"):
        page = site.build(Path())
    print_text(*written, page)
    stages.say(f"to search the pages, serve them: python3 -m http.server -d {page.parent}")
