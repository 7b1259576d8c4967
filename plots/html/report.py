"""One HTML page that holds a whole campaign: answers, figures, tables, machine, warnings.

Knows the order of the page; how it looks is templates/report.html.j2 and report.css, what answers a
reader's clicks and keys is report.js. The page loads nothing from anywhere, and holds everything
but the raw samples without its script.
"""

import base64
import hashlib
import math
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from experiments.analysis.campaign import Campaign
from experiments.analysis.metadata_diff import flatten
from experiments.analysis.reading import load
from experiments.analysis.selection import emulated, in_order
from experiments.analysis.statistics import CLAIM_BLOCKS, least_p
from experiments.analysis.validity_warnings import awake
from experiments.model.arms import arm_key
from experiments.model.quantities import NOTHING, counted, percent_text
from experiments.results.result import Result
from plots.contents import answers, drawings, is_bench, tables
from plots.draw import write
from plots.figures import bench, chain
from plots.html import samples
from plots.html.svg_embed import inline, variable
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.labels import MPIS, arm_name, glossary, mpi_name
from plots.layout.style import DARK
from plots.tables import data_path
from plots.tables.metadata_diff_table import by_arm, listed
from plots.text import causes
from plots.text.claims import Answer
from plots.text.headline import headline

TEMPLATES = Path(__file__).parent / "templates"
NAME = "report.html"

_APART = ("experiment", "schedule", "missing", "command", "format")
"""Parts of campaign.json that have a place of their own on the page, or none."""


Evidence = tuple[Answer, Drawing | None, list[Drawing]]
"""An answer; the first drawing of its topic, where that has a place further up the page; the
drawings of its topic that have none."""


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


def page(campaign: Campaign) -> str:
    """The page of a campaign, as text."""
    drawn = drawings(campaign)
    figures = [figure for figure in drawn if isinstance(figure, Drawing)]
    leading = next((figure for figure in figures if figure.topic == chain.NAME), None)
    shown, others = evidence(answers(campaign), figures, leading)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    raw = samples.samples(campaign)
    header, launches = campaign.header, campaign.launches
    arms = sorted({launch.launch.arm for launch in launches}, key=arm_key)
    apart, common = by_arm(launches)
    return template("report.html.j2").render(
        campaign=campaign.name,
        title=campaign.experiment.title,
        question=campaign.experiment.question,
        headline=headline(campaign),
        marks=bench.marks(campaign) if is_bench(campaign) else marks(campaign),
        leading=leading,
        evidence=shown,
        figures=others,
        skipped=[figure for figure in drawn if isinstance(figure, Skipped)],
        tables=tables(campaign),
        asleep=asleep(launches),
        warnings=campaign.warnings,
        missing=header["missing"],
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        samples=Markup(samples.text(raw)) if raw["cells"] else "",
        paths=data_path.table(launches),
        confounders=[
            [key, *(text or NOTHING for text in texts.values())] for key, texts in apart.items()
        ],
        arms=arms,
        environment=common,
        header=flatten({k: v for k, v in header.items() if k not in _APART}),
        experiment=flatten(listed(header["experiment"])),
        command=command(header["command"]),
        commands=commands(launches),
        glossary=glossary(),
        drawn_by=redraw(header["command"], campaign.folder.name),
        colours=[(variable(light), light, dark) for light, dark in DARK.items()],
    )


def evidence(
    answers: Sequence[Answer], drawn: Sequence[Drawing], leading: Drawing | None = None
) -> tuple[list[Evidence], list[Drawing]]:
    """Each answer with its drawings, and the drawings that no answer names: each has one place.

    Args:
        leading: the drawing above all answers.
    """
    left = [drawing for drawing in drawn if drawing is not leading]
    placed: list[Evidence] = []
    for answer in answers:
        first = next((drawing for drawing in drawn if drawing.topic == answer.figure), None)
        own = [drawing for drawing in left if drawing.topic == answer.figure]
        left = [drawing for drawing in left if drawing.topic != answer.figure]
        placed.append((answer, None if first in own else first, own))
    return placed, left


def template(name: str) -> Template:
    """A page's template."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = lambda drawing: Markup(inline(drawing))
    return environment.get_template(name)


def asleep(launches: Iterable[Result]) -> str:
    """How much of a CPU ranks used while they waited; "" where no launch stored it."""
    shares = awake(launches)
    if not shares:
        return ""
    (arm, mpi), share = max(shares.items(), key=lambda item: (item[1], item[0]))
    return (
        "While it waited for its turn, no rank used more than "
        f"{100 * share:.2g} % of a CPU (most: {arm} with {mpi})."
    )


def marks(campaign: Campaign) -> list[str]:
    """What a reader must know before the first figure, a few words each."""
    notes = [campaign.machine] if campaign.machine else []
    if campaign.blocks < CLAIM_BLOCKS and not campaign.machine:
        notes.append(
            f"Quick campaign: {counted(campaign.blocks, 'paired block')}, signed-rank p not below "
            f"{least_p(campaign.blocks):.3f}"
        )
    if emulated(campaign.times):
        notes.append("High-bandwidth memory emulated on ordinary memory")
    if not campaign.machine:
        floor = f"Noise floor ±{percent_text(campaign.floor)} at most"
        none = "No A/A pair" if campaign.twins.empty else "Too few A/A cells in every band of sizes"
        notes.append(floor if math.isfinite(campaign.floor) else f"{none}, so no noise floor")
    if count := len(causes.caveats(campaign)):
        caveats = counted(count, "caveat")
        notes.append(f"{caveats} beside the containers themselves: see the answers")
    notes += [f"{condition[0].upper()}{condition[1:]}" for condition in campaign.conditions]
    return notes + [f"Not measured: {level}" for level in campaign.unmeasured]


def commands(launches: Sequence[Result]) -> list[tuple[str, str]]:
    """(MPI and arm, its first launch's command as it was run), for each that stored one."""
    command_lines = {
        (launch.launch.mpi, launch.launch.arm): launch.command
        for launch in reversed(launches)
        if launch.command
    }
    order = in_order([mpi for mpi, _ in command_lines], MPIS)
    places = sorted(command_lines, key=lambda key: (order.index(key[0]), arm_key(key[1])))
    return [(f"{mpi_name(mpi)}, {arm_name(arm)}", command_lines[mpi, arm]) for mpi, arm in places]


def command(stored: Sequence[str]) -> str:
    """The command line that repeats the campaign, as a shell reads it.

    Args:
        stored: the words of the process that measured: invoke's, as ./inv starts it.
    """
    words = stored[3:] if stored[1:2] == ["--search-root"] else stored[1:]
    return shlex.join(["./inv", *words]) if stored else ""


def redraw(stored: Sequence[str], name: str) -> str:
    """The command line that makes this page, where the campaign is still where it was measured.

    Args:
        stored: as command's.
        name: of the results folder.
    """
    out = stored[stored.index("--out") + 1 :] if "--out" in stored else []
    return shlex.join(["./inv", "report", "--results", out[0] if out else f"results/{name}"])
