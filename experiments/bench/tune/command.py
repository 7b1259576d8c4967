"""What `invoke bench --tune` does once its flags are read: measure, and show what finished."""

from pathlib import Path

from experiments.bench.tune import driver, store, table
from experiments.bench.tune.question import Question
from experiments.console.output import to_stdout
from experiments.console.stages import Stages
from experiments.results import store as results

WIDTH = 150  # columns where standard output is no terminal: a line per row


def run(question: Question, out: Path, seed: int | None, stages: Stages, as_json: bool) -> None:
    """Measure into a new folder and print the proposal, also where Ctrl-C or an error ends it."""
    results.refuse_occupied(out)
    try:
        driver.run(question, out, seed, stages)
    finally:
        if results.finished(out):
            show(out, as_json)


def show(folder: Path, as_json: bool) -> None:
    """Store the proposal and show it on standard output, as JSON where that is wanted."""
    found = store.load(folder)
    results.write_json(folder / store.PROPOSAL, store.plain(found))
    if as_json:
        print((folder / store.PROPOSAL).read_text(encoding="utf-8"), end="")
        return
    to_stdout(table.render(found), WIDTH)
