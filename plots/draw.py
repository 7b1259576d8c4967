"""From a results folder to files: every figure and table, written whole or not at all.

The same folder gives the same bytes, whatever the locale, the working directory or the clock.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.analysis.campaign import Campaign
from experiments.analysis.cost_evaluation import Evaluation
from experiments.analysis.reading import load
from experiments.model.errors import ExperimentsError
from experiments.processes.files import whole_file
from plots.contents import drawings, is_bench, tables
from plots.figures import what_if
from plots.figures.fitted import fitted
from plots.figures.hosts import more_hosts
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.style import style
from plots.tables.table import Table

FORMATS = ("pdf", "svg", "png")


class PlotsError(ExperimentsError):
    """What was asked of the plots cannot be drawn or written."""


def draw(results: Path, out: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Every figure and table of a campaign, or every figure of a bench, as files in `out`.

    Returns:
        The files written: figures in each format as a paper takes them, without title and notes;
        those in a .caption.txt beside them; a campaign's tables as .csv and .tex.

    Raises:
        ResultsError: the folder holds no readable results.
        PlotsError: an unknown format, or `out` cannot be written.
    """
    for name in formats:
        if name not in FORMATS:
            raise PlotsError(f"unknown format {name!r}; name one of {', '.join(FORMATS)}")
    return draw_campaign(load(results), out, formats)


def draw_campaign(campaign: Campaign, out: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """The files that draw() writes, of a campaign that is read already."""
    written = write_drawings(drawings(campaign, printed=True), out, formats)
    return written + ([] if is_bench(campaign) else write_tables(tables(campaign), out))


def write_tables(made: Sequence[Table], out: Path) -> list[Path]:
    """Tables as .csv and .tex."""
    return [
        write(out / f"{table.name}.{form}", text.encode())
        for table in made
        for form, text in (("csv", table.csv()), ("tex", table.latex()))
    ]


def link_drawings(evaluation: Evaluation, most: int, *, printed: bool = False) -> list[Drawing]:
    """How well models of links fit, and what they say of more hosts.

    Args:
        most: hosts, the largest number.
    """
    with style(printed=printed):
        return [*fitted(evaluation), *more_hosts(evaluation, most)]


def model_drawings(
    evaluation: Evaluation,
    machines: Sequence[str],
    networks: Sequence[str],
    most: int,
    *,
    printed: bool = False,
) -> list[Drawing | Skipped]:
    """How well models fit, and what they say of other machines.

    Args:
        machines, networks: names that what-if is about.
        most: nodes, the largest number.
    """
    with style(printed=printed):
        drawn: list[Drawing | Skipped] = [*fitted(evaluation)]
        for name in machines:
            drawn.append(what_if.speedup(evaluation, name))
            drawn.append(what_if.scaling(evaluation, name, networks, most))
    return drawn


def write_drawings(
    drawn: Sequence[Drawing | Skipped], out: Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Drawings in each format, and the words of each in a .caption.txt beside it."""
    written = []
    for drawing in (figure for figure in drawn if isinstance(figure, Drawing)):
        for name in formats:
            written.append(write(out / f"{drawing.name}.{name}", encode(drawing, name)))
        text = f"{drawing.printed_caption}\n"
        written.append(write(out / f"{drawing.name}.caption.txt", text.encode()))
    return written


def encode(drawing: Drawing, form: str) -> bytes:
    """A figure as the bytes of a file; no date, no random identifier, no version in them."""
    metadata: dict[str, dict[str, Any]] = {
        "pdf": {"Creator": "hbmcomm", "Producer": None, "CreationDate": None},
        "svg": {"Creator": "hbmcomm", "Date": None},
        "png": {"Software": "hbmcomm"},
    }
    memory, named = io.BytesIO(), {"Title": drawing.title} | metadata[form]
    with style(printed=drawing.figure.printed):
        drawing.figure.savefig(memory, format=form, metadata=named)
    return memory.getvalue()


def write(path: Path, content: bytes) -> Path:
    """Write whole or not at all.

    Raises:
        PlotsError: the folder cannot be made or written, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write(content)
    except OSError as error:
        raise PlotsError(
            f"{path} cannot be written ({error.strerror}); free some space or name another --out"
        ) from error
    return path
