"""One HTML page that holds a whole campaign: answers, figures, tables, machine, warnings.

Knows what stands where; how it looks is templates/report.html.j2 and report.css. The page loads
nothing from anywhere and runs no script.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from experiments.confounders import differences, flatten
from experiments.results import Campaign, load
from experiments.statistics import CLAIM_BLOCKS, least_p
from plots.answers import answers
from plots.draw import drawings, write
from plots.findings import Findings, emulated, find
from plots.inline import inline, variable
from plots.labels import percent_text
from plots.sheet import Drawing, Skipped
from plots.style import DARK
from plots.tables import tables

TEMPLATES = Path(__file__).parent / "templates"
NAME = "report.html"

_APART = ("experiment", "schedule", "missing", "command", "format")
"""Parts of campaign.json that have a place of their own on the page, or none."""


def report(results: Path, out: Path) -> Path:
    """Write the page of a results folder into `out`, or as `out` when that ends in .html.

    Raises:
        ResultsError: the folder holds no readable results.
        PlotsError: the page cannot be written.
    """
    campaign = load(results)
    path = out if out.suffix == ".html" else out / NAME
    return write(path, page(campaign).encode())


def page(campaign: Campaign) -> str:
    """The page of a campaign, as text."""
    found = find(campaign)
    drawn = drawings(found)
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        campaign=campaign.name,
        title=campaign.experiment.title,
        question=campaign.experiment.question,
        marks=marks(found),
        answers=answers(found),
        figures=[(each, Markup(inline(each))) for each in drawn if isinstance(each, Drawing)],
        skipped=[each for each in drawn if isinstance(each, Skipped)],
        tables=tables(found),
        warnings=campaign.warnings,
        missing=campaign.header.get("missing", []),
        confounders=differences(campaign.launches),
        environment=common(campaign.launches),
        header=flatten({k: v for k, v in campaign.header.items() if k not in _APART}),
        experiment=flatten(plain(campaign.header["experiment"])),
        command=command(campaign.header.get("command", "")),
        colours=[(variable(light), light, dark) for light, dark in DARK.items()],
    )


def marks(found: Findings) -> list[str]:
    """What a reader must know before the first figure, a few words each."""
    told = []
    if found.blocks < CLAIM_BLOCKS:
        told.append(
            f"Quick campaign: {found.blocks} paired blocks, signed-rank p not below "
            f"{least_p(found.blocks):.3f}"
        )
    if emulated(found.times):
        told.append("High-bandwidth memory emulated on ordinary memory")
    told.append(
        f"Noise floor ±{percent_text(found.floor)}"
        if found.floor == found.floor
        else "No A/A pair, so no noise floor"
    )
    told += found.caveats
    told += [f"Not measured: {level}" for level in found.unmeasured]
    return told


def common(launches: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """{key: value} recorded in every launch; a key that differs between arms is a confounder."""
    apart = differences(launches)
    seen: dict[str, list[str]] = {}
    for launch in launches:
        for key, value in flatten(launch["environment"]).items():
            if key not in apart and value not in seen.setdefault(key, []):
                seen[key].append(value)
    return {
        key: values[0] if len(values) == 1 else f"{values[0]} (and {len(values) - 1} more)"
        for key, values in sorted(seen.items())
    }


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with lists as a reader writes them: "2, 4, 8"."""
    return {
        key: plain(value)
        if isinstance(value, Mapping)
        else ", ".join(map(str, value))
        if isinstance(value, list)
        else value
        for key, value in values.items()
    }


def command(stored: object) -> str:
    """The command line that repeats the campaign, as a shell reads it."""
    return shlex.join(map(str, stored)) if isinstance(stored, list) else str(stored)
