"""What `invoke bench --tune` does once its flags are read: measure, and show what finished."""

from pathlib import Path

from experiments.bench.tune import driver, store, table
from experiments.bench.tune.question import Question
from experiments.bench.tune.trials import trials
from experiments.console.output import to_stdout
from experiments.console.stages import Stages
from experiments.results import store as results

WIDTH = 150  # columns where standard output is no terminal: a line per row


def run(
    question: Question,
    out: Path,
    seed: int | None,
    stages: Stages,
    as_json: bool,
    plan: driver.Plan = trials,
) -> None:
    """Measure into a new folder and print the proposal, also where Ctrl-C or an error ends it.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    results.refuse_occupied(out)
    try:
        driver.run(question, out, seed, stages, plan)
    finally:
        if results.finished(out):
            show(out, as_json)


def show(folder: Path, as_json: bool) -> None:
    """The proposal on standard output, as JSON where that is wanted."""
    found = driver.summarise(folder)
    if as_json:
        print((folder / store.PROPOSAL).read_text(encoding="utf-8"), end="")
        return
    to_stdout(table.render(found), WIDTH)
