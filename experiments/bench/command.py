"""What `invoke bench` does once its flags are read: measure, and show what finished in any case."""

from pathlib import Path

from rich.console import Console

from experiments import results
from experiments.bench import driver, store, table
from experiments.bench.question import Question
from experiments.stages import Stages

WIDTH = 150  # columns where standard output is no terminal: a line per row


def run(question: Question, out: Path, seed: int | None, stages: Stages, as_json: bool) -> None:
    """Measure into a new folder and print its tables, also where Ctrl-C or an error ends it.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    store.refuse_existing(out)
    try:
        driver.run(question, out, seed, stages)
    finally:
        if results.finished(out):
            show(out, as_json)


def show(folder: Path, as_json: bool) -> None:
    """The tables on standard output, as JSON where that is wanted."""
    found = driver.summarise(folder)
    if as_json:
        print((folder / store.TABLE).read_text(encoding="utf-8"), end="")
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(table.render(found), highlight=False)
