"""One HTML page that holds a whole campaign: answers, figures, tables, machine, warnings.

Knows the order of the page; how it looks is templates/report.html.j2 and report.css, what answers a
reader's clicks and keys is report.js. The page loads nothing from anywhere, and holds everything
but the raw samples without its script.
"""

import base64
import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from experiments.analysis.arm_order import arm_key
from experiments.analysis.findings.campaign import Findings, find
from experiments.analysis.findings.selection import emulated, in_order
from experiments.analysis.metadata_diff import flatten
from experiments.analysis.reading import Campaign, load
from experiments.analysis.statistics import CLAIM_BLOCKS, least_p
from experiments.analysis.validity_warnings import awake
from experiments.model.experiment import MPIS_ARE_ARMS
from experiments.model.quantities import counted, percent_text
from plots import glossary
from plots.draw import contest_drawings, drawings, write
from plots.figures import chain
from plots.html import samples
from plots.html.svg_embed import inline, variable
from plots.layout import confounder_text
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.labels import MPIS, arm_name, mpi_name
from plots.layout.style import DARK
from plots.tables import data_path
from plots.tables.metadata_diff_table import apart, common, listed
from plots.tables.results import tables
from plots.tables.table import Table
from plots.text import rivals
from plots.text.answers import Answer, answers
from plots.text.evidence import evidence
from plots.text.headline import headline

TEMPLATES = Path(__file__).parent / "templates"
NAME = "report.html"

_APART = ("experiment", "schedule", "missing", "command", "format")
"""Parts of campaign.json that have a place of their own on the page, or none."""


def report(results: Path, out: Path) -> Path:
    """Write the page of a results folder; answer with place(out).

    Raises:
        ResultsError: the folder holds no readable results.
        PlotsError: the page cannot be written.
    """
    campaign = load(results)
    return write(place(out), page(campaign).encode())


def place(out: Path) -> Path:
    """The file of a page that is written into `out`: `out` itself when that ends in .html."""
    return out if out.suffix == ".html" else out / NAME


@dataclass(frozen=True)
class Contents:
    """What a page takes from the measurements: of a bench in its way, of other campaigns in theirs.

    Attributes:
        headline, marks: a sentence or a few words each; marks are read before the first figure.
    """

    headline: list[str]
    marks: list[str]
    answers: list[Answer]
    drawn: list[Drawing | Skipped]
    tables: list[Table]


def page(campaign: Campaign) -> str:
    """The page of a campaign, as text."""
    found = find(campaign)
    contents = _contents(campaign, found)
    figures = [each for each in contents.drawn if isinstance(each, Drawing)]
    leading = next((each for each in figures if each.topic == chain.NAME), None)
    shown, others = evidence(contents.answers, figures, leading)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    raw = samples.samples(campaign, found.containers)
    header, launches = campaign.header, campaign.launches
    return _template().render(
        campaign=campaign.name,
        title=campaign.experiment.title,
        question=campaign.experiment.question,
        headline=contents.headline,
        marks=contents.marks,
        leading=leading,
        evidence=shown,
        figures=others,
        skipped=[each for each in contents.drawn if isinstance(each, Skipped)],
        tables=contents.tables,
        asleep=asleep(launches),
        warnings=campaign.warnings,
        missing=header.get("missing", []),
        script=Markup(script),
        script_hash=digest(script),
        samples=Markup(samples.text(raw)) if raw["cells"] else "",
        paths=data_path.table(launches),
        confounders=apart(launches),
        arms=arms(launches),
        environment=common(launches),
        header=flatten({k: v for k, v in header.items() if k not in _APART}),
        experiment=flatten(listed(header["experiment"])),
        command=command(header.get("command", "")),
        commands=commands(launches),
        glossary=glossary.words(),
        drawn_by=redraw(header.get("command", ""), campaign.folder.name),
        colours=[(variable(light), light, dark) for light, dark in DARK.items()],
    )


def _contents(campaign: Campaign, found: Findings) -> Contents:
    if campaign.experiment.launches.arms == MPIS_ARE_ARMS:
        return Contents(
            headline=[],
            marks=rivals.marks(campaign),
            answers=rivals.answers(campaign),
            drawn=contest_drawings(campaign),
            tables=[rivals.table(campaign)],
        )
    return Contents(
        headline=headline(found),
        marks=marks(found),
        answers=answers(found),
        drawn=drawings(found),
        tables=tables(found),
    )


def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = lambda drawing: Markup(inline(drawing))
    return environment.get_template("report.html.j2")


def asleep(launches: Iterable[Mapping[str, Any]]) -> str:
    """How much of a CPU ranks used while they waited; "" where no launch stored it."""
    found = awake(launches)
    if not found:
        return ""
    (arm, mpi), share = max(found.items(), key=lambda each: (each[1], each[0]))
    return (
        "While it waited for its turn, no rank used more than "
        f"{100 * share:.2g} % of a CPU (most: {arm} with {mpi})."
    )


def marks(found: Findings) -> list[str]:
    """What a reader must know before the first figure, a few words each."""
    notes = [found.machine] if found.machine else []
    if found.blocks < CLAIM_BLOCKS and not found.machine:
        notes.append(
            f"Quick campaign: {counted(found.blocks, 'paired block')}, signed-rank p not below "
            f"{least_p(found.blocks):.3f}"
        )
    if emulated(found.times):
        notes.append("High-bandwidth memory emulated on ordinary memory")
    if not found.machine:
        notes.append(
            f"Noise floor ±{percent_text(found.floor)}"
            if found.floor == found.floor
            else "No A/A pair, so no noise floor"
        )
    if count := len(confounder_text.caveats(found)):
        notes.append(
            f"{count} caveat{'s' * (count > 1)} beside the containers themselves: see the answers"
        )
    notes += [f"Not measured: {level}" for level in found.unmeasured]
    return notes


def digest(script: str) -> str:
    """What the page's policy calls the only script that may run: base64 of its SHA-256."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def arms(launches: Sequence[Mapping[str, Any]]) -> list[str]:
    """The arms that have a finished launch, in the order in which figures show them."""
    return sorted({launch["launch"]["arm"] for launch in launches}, key=arm_key)


def commands(launches: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """(MPI and arm, its first launch's command as it was run), for each that stored one."""
    found: dict[tuple[str, str], str] = {}
    for launch in launches:
        if "command" in launch:
            asked = launch["launch"]
            found.setdefault((asked["mpi"], asked["arm"]), str(launch["command"]))
    order = in_order([mpi for mpi, _ in found], MPIS)
    places = sorted(found, key=lambda key: (order.index(key[0]), arm_key(key[1])))
    return [(f"{mpi_name(mpi)}, {arm_name(arm)}", found[mpi, arm]) for mpi, arm in places]


def command(stored: object) -> str:
    """The command line that repeats the campaign, as a shell reads it.

    Args:
        stored: the words of the process that measured: invoke's, as ./inv starts it.
    """
    if not isinstance(stored, list):
        return str(stored)
    words = [str(word) for word in stored[1:]]
    if words[:1] == ["--search-root"]:
        del words[:2]
    return shlex.join(["./inv", *words])


def redraw(stored: object, name: str) -> str:
    """The command line that makes this page, where the campaign is still where it was measured.

    Args:
        stored: as command's.
        name: of the results folder.
    """
    words = [str(word) for word in stored] if isinstance(stored, list) else []
    out = words[words.index("--out") + 1 :] if "--out" in words else []
    return shlex.join(["./inv", "report", "--results", out[0] if out else f"results/{name}"])
