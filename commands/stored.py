"""`plot`, `report`, `archive`, `compare` and `export`: what is made of a stored campaign.

Imports pandas, matplotlib, docker and multiprocessing in the functions that need them: that takes a
second, which the other tasks need not pay.
"""

from pathlib import Path

from commands import programs
from commands.flags import check_choice
from commands.folders import FIGURES, new_figures, newest, stored, writable_file
from experiments.console import Stages, print_text
from experiments.model.errors import ExperimentsError
from experiments.results import archive as archives
from experiments.results.program_runs import is_program
from experiments.results.unarchive import opened

FORMATS = "pdf,svg,png"


def draw(folder: Path, out: Path, formats: str = FORMATS) -> list[Path]:
    """A campaign's figures and tables into a folder; what was written."""
    from plots import draw as drawing

    return drawing.draw(folder, out, tuple(formats.split(",")))


def write_report(folder: Path, out: Path) -> Path:
    """A campaign's page into a folder or file; its path."""
    from plots.html.report import report

    return report(folder, out)


def draw_and_report(folder: Path, out: Path) -> Path:
    """A campaign's figures, tables and page into a folder, drawn on two cores; the page.

    Raises:
        ExperimentsError: one of them cannot be drawn or written.
    """
    import multiprocessing
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as beside:
        page = beside.submit(write_report, folder, out)
        draw(folder, out)
        try:
            return page.result()
        except BrokenProcessPool as error:
            raise ExperimentsError(
                "the process that wrote the page was ended, perhaps for lack of memory; the "
                f"figures are in {out}; write the page: ./inv report --results {folder}"
            ) from error


def plot(results: str | None, out: str, formats: str) -> None:
    """Draw a stored campaign; print the files."""
    with stored(results) as folder:
        target = new_figures("out", out, folder)
        with Stages().stage("figures"):
            written = draw(folder, target, formats)
    print_text(*written)


def report(results: str | None, out: str) -> None:
    """Write a stored campaign's page; print its path."""
    from plots.html.report import place

    with stored(results) as folder:
        target = writable_file("out", place(Path(out) if out else FIGURES / folder.name))
        with Stages().stage("report"):
            written = programs.report if is_program(folder) else write_report
            page = written(folder, target)
    print_text(page)


def archive(results: str | None, out: str, data_only: bool) -> None:
    """Pack a campaign into one file; print its digest and path."""
    from experiments.provision.image import in_history

    folder = Path(results) if results else newest()
    target = writable_file("out", archives.target(folder, Path(out) if out else None))
    stages = Stages()
    archives.refuse_unrepeatable(folder, target, in_history, stages.say)

    def drawn(stored: Path, figures: Path) -> None:
        if data_only:
            return
        with stages.stage("figures"):
            if is_program(stored):
                programs.report(stored, figures)
            else:
                draw_and_report(stored, figures)

    with stages.stage("archive", spinner=False):
        digest = archives.archive(folder, drawn, target, stages.say)
    print_text(f"{digest}  {target}")


def compare(first: str, second: str, other_mpi: bool, json: bool) -> None:
    """Print two campaigns side by side."""
    from plots.tables import comparison

    with opened(Path(first)) as one, opened(Path(second)) as other:
        comparison.show(one, other, other_mpi, json, Stages())


def export(results: str | None, form: str, out: str, samples: bool) -> None:
    """Write a campaign's numbers to a file or standard output."""
    from experiments.analysis import export as exports
    from experiments.analysis.reading import load

    check_choice("format", form, exports.FORMATS)
    target = writable_file("out", Path(out)) if out else None
    with stored(results) as folder, Stages().stage("export"):
        exports.export(load(folder), form, target, samples)
    if out:
        print_text(out)
