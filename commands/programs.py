"""`run --program`: what a container costs a user's own program."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from commands.flags import whole_number
from commands.folders import new_results, newest, writable
from experiments.console import Stages, print_text
from experiments.model import program
from experiments.model.errors import ExperimentsError
from experiments.results.program_runs import is_program, read_runs
from experiments.results.store import ResultsError

FLAGS = ("host_program", "image", "options", "workdir", "metric", "seconds")
"""Flags of `run` that are of a user's program alone, beside --program itself."""
SHARED = ("env", "profiles", "ranks", "blocks", "out", "seed")
"""Those that it shares with experiments."""


def start(
    line: str | None,
    given: Mapping[str, str],
    others: Mapping[str, str],
    dry_run: bool = False,
    resume: bool = False,
    mend: bool = False,
    uncounted: bool = False,
) -> None:
    """Measure a user's program, or print the commands that would run it.

    Args:
        line: of --program; None where that is not given.
        given: the values of FLAGS and SHARED, "" where one is not given.
        others: of the other flags of `run`, which are of experiments.
        mend, uncounted: as program.asked() takes them.
    """
    from experiments.driver import program_campaign, program_place
    from experiments.provision import passthrough

    if resume:
        raise ExperimentsError("--resume goes on as the campaign began; drop the other flags")
    foreign = [name for name, value in others.items() if value]
    if foreign:
        raise ExperimentsError(
            f"--{foreign[0].replace('_', '-')} is of experiments, and --program measures yours: "
            "drop one of them"
        )
    if line is None:
        first = next((name for name in FLAGS if given[name]), "mend" if mend else "uncounted")
        flag = first.replace("_", "-")
        raise ExperimentsError(f"--{flag} is of a user's program: name it with --program")
    request = program.asked(
        line,
        given["host_program"],
        given["image"],
        given["ranks"],
        given["env"],
        given["profiles"],
        given["options"],
        given["workdir"],
        given["metric"],
        given["seconds"],
        whole_number("blocks", given["blocks"], program.FEWEST),
        uncounted,
        mend,
        passthrough.cores(),
    )
    if dry_run:
        print_text("\n".join(program_place.preview(request)))
        return
    program_place.refuse_large(request)
    seed = whole_number("seed", given["seed"], 0)
    folder = writable("out", new_results("program", given["out"]))
    _finish(program_campaign.run(request, folder, Stages(), seed), folder)


def is_resumed(out: str) -> bool:
    """Whether `run --resume` goes on with a campaign of a user's program."""
    with contextlib.suppress(ResultsError):
        return is_program(Path(out) if out else newest())
    return False


def resume(out: str) -> None:
    """Complete a campaign of a user's program."""
    from experiments.driver import program_campaign

    folder = Path(out) if out else newest()
    _finish(program_campaign.resume(folder, Stages()), folder)


def report(folder: Path, target: Path) -> Path:
    """Write the page of a campaign of a user's program, and print its answer."""
    from plots.html.program import program_report, text

    print_text("\n".join(text(read_runs(folder))))
    return program_report(folder, target)


def _finish(failures: list[str], folder: Path) -> None:
    """Print the answer; exit code 1 where runs were lost."""
    from plots.html.program import text

    runs = read_runs(folder)
    if runs.blocks:
        print_text("\n".join(text(runs)))
    print_text(f"The page: ./inv report --results {folder}")
    if failures:
        raise ExperimentsError("\n".join(failures))
