"""The page of a campaign of a user's program: answers, a table, what differs, how to repeat it."""

import shlex
from pathlib import Path

from experiments.analysis.program_cost import ProgramCost, cost_of
from experiments.model.quantities import (
    NOTHING,
    bound_text,
    ratio_text,
    seconds_text,
    share_text,
)
from experiments.results.program_runs import ProgramHeader, ProgramRuns, read_runs
from plots.draw import write
from plots.figures.program import drawing
from plots.html.report import command, place, template
from plots.html.svg_embed import variable
from plots.layout.style import DARK
from plots.text.program_answer import answers, conditions

HEAD = ("environment", "time over the first", "interval", "time", "in MPI", "starts in", "MPI_Init")


def program_report(results: Path, out: Path) -> Path:
    """Write the page of a campaign of a user's program; its path.

    Raises:
        ResultsError: the folder holds no readable results.
        PlotsError: the page cannot be written.
    """
    return write(place(out), page(read_runs(results)).encode())


def page(runs: ProgramRuns) -> str:
    """The page as text."""
    cost = cost_of(runs)
    return template("program.html.j2").render(
        campaign=runs.folder.name,
        program=shlex.join(runs.header.request.program),
        answers=answers(cost),
        drawing=drawing(cost) if len(cost.costs) > 1 else None,
        conditions=conditions(cost),
        head=HEAD,
        rows=rows(cost),
        allowed_head=["", *runs.habitats],
        allowed=allowed(runs.header),
        missing=runs.header.missing,
        command=command(list(runs.header.command)),
        machine=runs.header.machine,
        colours=[(variable(light), light, dark) for light, dark in DARK.items()],
    )


def text(runs: ProgramRuns) -> list[str]:
    """The answer as lines for a terminal."""
    cost = cost_of(runs)
    lines: list[str] = []
    for name, sentences in answers(cost):
        lines += [f"{name}:", *(f"  {sentence}" for sentence in sentences)]
    if not cost.costs:
        return ["No run of any environment came to its end; the messages above say why."]
    if not lines:
        lines.append(f"{cost.costs[0].arm}: {seconds_text(cost.costs[0].seconds)} in a run.")
    return [*lines, *conditions(cost)]


def rows(cost: ProgramCost) -> list[list[str]]:
    """The table of the environments, the reference first."""
    return [
        [
            arm.arm,
            ratio_text(arm.ratio.value),
            bound_text(arm.ratio.low, arm.ratio.high),
            seconds_text(arm.seconds),
            share_text(arm.mpi / arm.seconds) if arm.seconds else NOTHING,
            seconds_text(arm.started),
            seconds_text(arm.readied),
        ]
        for arm in cost.costs
    ]


def allowed(header: ProgramHeader) -> list[list[str]]:
    """What each environment has and allows, a line for each fact that was looked for."""
    names = dict.fromkeys(name for habitat in header.habitats for name in habitat.allows)
    libraries = dict.fromkeys(name for habitat in header.habitats for name in habitat.libraries)
    lines = [
        [name, *(str(habitat.allows.get(name, NOTHING)) for habitat in header.habitats)]
        for name in names
    ]
    quotas = (f"{habitat.quota:g}" if habitat.quota else "none" for habitat in header.habitats)
    lines.append(["quota in CPUs", *quotas])
    return lines + [
        [name, *(habitat.libraries.get(name, NOTHING) for habitat in header.habitats)]
        for name in libraries
    ]
