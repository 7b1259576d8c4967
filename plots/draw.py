"""From a results folder to files: every figure and table, written whole or not at all.

The same folder gives the same bytes, whatever the locale, the working directory or the clock.
"""

import io
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.analysis.cost_evaluation import Evaluation
from experiments.analysis.findings import Findings, find
from experiments.analysis.reading import Campaign, load
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import MPIS_ARE_ARMS
from experiments.processes.files import whole_file
from plots.figures import what_if
from plots.figures.baselines import baselines
from plots.figures.bench import contest
from plots.figures.chain import chain
from plots.figures.container import container
from plots.figures.drift import drift
from plots.figures.fitted import fitted
from plots.figures.hosts import more_hosts
from plots.figures.map import placement_map
from plots.figures.placement import placement
from plots.figures.speedup import speedup
from plots.figures.systems import others, systems
from plots.figures.times import times
from plots.figures.wires import wires
from plots.figures.workloads import workloads
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.style import style
from plots.tables.results import tables
from plots.tables.table import Table, csv, latex

FORMATS = ("pdf", "svg", "png")

Figures = Mapping[str, Callable[[Findings], Sequence[Drawing | Skipped]]]
TIMED: Figures = {
    "workloads": workloads,
    "others": others,
    "times": times,
    "speedup": speedup,
    "placement": placement,
    "systems": systems,
    "wires": wires,
    "baselines": baselines,
}
"""By topic, with which the names of its figures begin."""

MAPS: Figures = {"placement-map": placement_map}
COSTS: Figures = {"chain": chain, "container": container, "drift": drift}
TOPICS = (*TIMED, *MAPS, *COSTS)


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
    campaign = load(results)
    if campaign.experiment.launches.arms == MPIS_ARE_ARMS:
        return write_drawings(contest_drawings(campaign, printed=True), out, formats)
    found = find(campaign)
    written = write_drawings(drawings(found, printed=True), out, formats)
    return written + write_tables(tables(found), out)


def write_tables(made: Sequence[Table], out: Path) -> list[Path]:
    """Tables as .csv and .tex."""
    return [
        write(out / f"{table.name}.{form}", encoded(table).encode())
        for table in made
        for form, encoded in (("csv", csv), ("tex", latex))
    ]


def link_drawings(found: Evaluation, most: int, *, printed: bool = False) -> list[Drawing]:
    """How well models of links fit, and what they say of more hosts.

    Args:
        most: hosts, the largest number.
    """
    with style(printed=printed):
        return [*fitted(found), *more_hosts(found, most)]


def model_drawings(
    found: Evaluation,
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
        drawn: list[Drawing | Skipped] = [*fitted(found)]
        for name in machines:
            drawn.append(what_if.speedup(found, name))
            drawn.append(what_if.scaling(found, name, networks, most))
    return drawn


def contest_drawings(bench: Campaign, *, printed: bool = False) -> list[Drawing | Skipped]:
    """Every figure of a bench."""
    with style(printed=printed):
        return contest(bench)


def write_drawings(
    drawn: Sequence[Drawing | Skipped], out: Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Drawings in each format, and the words of each in a .caption.txt beside it."""
    written = []
    for drawing in (each for each in drawn if isinstance(each, Drawing)):
        for name in formats:
            written.append(write(out / f"{drawing.name}.{name}", encode(drawing, name)))
        text = f"{drawing.printed_caption}\n"
        written.append(write(out / f"{drawing.name}.caption.txt", text.encode()))
    return written


def drawings(
    found: Findings, *, printed: bool = False, topics: Container[str] = TOPICS
) -> list[Drawing | Skipped]:
    """Every figure, in the paper's order; those that the campaign cannot fill say why.

    Of an emulated machine the map comes first, which alone is real; the words of all say so.

    Args:
        topics: those of TOPICS whose figures are wanted.
    """
    with style(printed=printed):
        timed, maps, costs = (
            [each for name, drawn in group.items() if name in topics for each in drawn(found)]
            for group in (TIMED, MAPS, COSTS)
        )
    if not found.machine:
        return [*timed, *maps, *costs]
    warning = found.machine
    return [
        replace(
            each, caption=f"{warning} {each.caption}", description=f"{warning} {each.description}"
        )
        if isinstance(each, Drawing)
        else each
        for each in (*maps, *timed, *costs)
    ]


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
