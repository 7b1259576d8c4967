"""The parts of README.md and docs/ that are made of something else: `./inv docs` writes them.

Such a part is between `<!-- NAME -->` and `<!-- end -->`. Tables of fields come from JSON Schemas,
figures, measured sentences and tables from the campaigns stored in docs/data, the glossary from its
file, docs/reproduce.md from the pages and the archives. A test checks that the pages hold what
would be written.
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from experiments.analysis import cost_of_links, whatif
from experiments.analysis.campaign import BASELINE, OURS, Campaign
from experiments.analysis.container_steps import STEPS
from experiments.analysis.cost_cells import of_bench
from experiments.analysis.cost_evaluation import Evaluation, evaluate
from experiments.analysis.program_cost import cost_of
from experiments.analysis.reading import load
from experiments.analysis.selection import at, in_order, rows
from experiments.driver import overview
from experiments.driver.forecast import Host
from experiments.model import experiment
from experiments.model.arms import HOST
from experiments.model.quantities import (
    NOTHING,
    bytes_text,
    counted,
    interval_text,
    ranks_text,
    ratio_text,
    seconds_text,
)
from experiments.results.program_runs import ProgramRuns, is_program, read_runs
from experiments.results.unarchive import opened
from plots import reproduce
from plots.contents import TOPICS, answers, drawings
from plots.draw import PlotsError, encode, link_drawings, write
from plots.figures import what_if
from plots.figures.wires import best_flat
from plots.html import program
from plots.layout import labels
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.style import TRANSPORTS, style
from plots.tables import cost_models, stored_bench
from plots.tables.listing import widest_text
from plots.tables.table import markdown
from plots.text.headline import headline

DATA = Path("docs/data")
WIDTH = 100
USUAL_HOST = Host(cores=16, copied=5e9, cache=2**25)
"""docs/experiments.md shows the times of this machine."""
_PART = re.compile(
    r"(<!-- (glossary|experiments|(?:fields|measured|reproduce): [\w, -]+) -->\n).*?(<!-- end -->)",
    re.DOTALL,
)
_TYPES: Mapping[str, str] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "table",
}


def refresh(root: Path) -> list[Path]:
    """Write every generated part of the checkout in `root`; returns the files.

    Raises:
        PlotsError: a page has a part that nothing makes.
    """
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    wanted = {match[2] for text in texts.values() for match in _PART.finditer(text)}
    parts: dict[str, str] = {}

    def make(prefix: str, makers: Mapping[str, Callable[[Any], str]], of: Any) -> None:
        for name, made in makers.items():
            part = f"{prefix}{name}"
            parts[part] = made(of) if part in wanted else ""

    make("reproduce: ", OF_REPRODUCING, root)
    written: list[Path] = []
    for path in (root / "docs" / "schemas").glob("*.schema.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        name = path.name.partition(".")[0]
        if name == "campaign":
            schema["properties"]["experiment"] = experiment.schema()
            written.append(write(path, f"{json.dumps(schema, indent=1)}\n".encode()))
        make("fields: ", {name: table}, schema)
    for archive in sorted((root / DATA).glob("*.tar.xz")):
        name = archive.name.removesuffix(".tar.xz")
        with opened(archive) as results:
            if is_program(results):
                make(f"measured: {name}, ", OF_PROGRAMS, read_runs(results))
                continue
            campaign = load(results)
        make(f"measured: {name}, ", MEASURED, campaign)
        shown = [topic for topic in TOPICS if any((root / "docs").rglob(f"{name}-{topic}*.svg"))]
        written += _shown(root, name, partial(drawings, campaign, topics=shown))
        if cost_of_links.are_in(campaign):
            models = evaluate(cost_of_links.of_links(campaign))
            make(f"measured: {name}, ", OF_MODELS, models)
            written += _shown(root, name, partial(link_drawings, models, whatif.MOST_NODES))
    for path in sorted((root / DATA).glob("*.json.xz")):
        bench = stored_bench.load(path)
        name = path.name.removesuffix(".json.xz")
        models = evaluate(of_bench(path.name, bench))
        make(f"measured: {name}, ", OF_BENCH, bench)
        make(f"measured: {name}, ", OF_MODELS, models)
        written += _shown(root, name, partial(_speedups, models))
    for page, text in texts.items():
        if _PART.search(text):
            written.append(write(page, filled(page.name, text, parts).encode()))
    return written


def filled(page: str, text: str, parts: Mapping[str, str] = MappingProxyType({})) -> str:
    """A page with these parts, and with those that need no campaign."""

    def made(match: re.Match[str]) -> str:
        name = match[2]
        if name not in parts and name not in UNMEASURED:
            raise PlotsError(
                f"{page} has a part {name!r}, and nothing makes it; known are "
                f"{', '.join(sorted((*parts, *UNMEASURED)))}"
            )
        return f"{match[1]}{parts[name] if name in parts else UNMEASURED[name]()}{match[3]}"

    return _PART.sub(made, text)


def _shown(
    root: Path, name: str, draw: Callable[[], Iterable[Drawing | Skipped]]
) -> Iterator[Path]:
    """Figures of a campaign that a page shows, each beside it in a file campaign-figure.svg."""
    files = {path.stem: path for path in (root / "docs").rglob(f"{name}-*.svg")}
    for drawing in draw() if files else ():
        if isinstance(drawing, Drawing) and f"{name}-{drawing.name}" in files:
            yield write(files[f"{name}-{drawing.name}"], encode(drawing, "svg"))


def _speedups(models: Evaluation) -> list[Drawing]:
    with style(printed=False):
        return [what_if.speedup(models, whatif.PAPERS)]


def _glossary() -> str:
    words = [[f"**{word}**", meaning] for word, meaning in labels.glossary().items()]
    return markdown(["word", "meaning"], words)


def _experiments() -> str:
    every = [summary.row() for summary in overview.every(USUAL_HOST)]
    return markdown([*overview.HEAD], ([f"`{name}`", *others] for name, *others in every))


def _slower(campaign: Campaign) -> list[str]:
    return [
        answer.sentence
        for answer in answers(campaign)
        if answer.question.startswith("How much slower")
    ]


def _opening(campaign: Campaign) -> str:
    """The first answer without its details and conditions, which docs/performance.md has."""
    answer = _slower(campaign)[0].partition(": ")[0]
    return f"{answer}. {counted(campaign.blocks, 'block')} of arms in turns."


def _containers(campaign: Campaign) -> str:
    said = headline(campaign)
    return " ".join([*said.sentences, *said.conditions, _conditions(campaign)])


def _conditions(campaign: Campaign) -> str:
    """What a reader must know beside any ratio of the campaign."""
    return " ".join(
        [
            f"{counted(campaign.blocks, 'block')} of arms in turns.",
            labels.floor_text(campaign.floors),
        ]
        + [f"{condition[0].upper()}{condition[1:]}." for condition in campaign.conditions]
    )


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, break_on_hyphens=False)) + "\n"


def _listed(line: str) -> str:
    """A line of an answer as one of a list, within another one where it is indented."""
    depth = "  " * line.startswith(" ")
    return (
        textwrap.fill(
            line.strip(),
            WIDTH,
            initial_indent=f"{depth}- ",
            subsequent_indent=f"{depth}  ",
            break_on_hyphens=False,
        )
        + "\n"
    )


def _times(campaign: Campaign) -> str:
    """Operations by size on the host: the time with `direct`, and that of others over it."""
    both = (campaign.times, campaign.transports)
    times, ratios = (at(frame, environment=HOST, kind=BASELINE) for frame in both)
    over = {(row.operation, row.bytes, row.transport): row for row in rows(ratios)}
    others = [party for party in in_order(times["transport"], TRANSPORTS) if party != OURS]
    ours = at(times, transport=OURS).sort_values(["operation", "bytes"], key=labels.by_operation)
    body = [
        [labels.operation_name(row.operation), bytes_text(row.bytes), seconds_text(row.median_s)]
        + [_ratio(over.get((row.operation, row.bytes, other))) for other in others]
        for row in rows(ours)
    ]
    return markdown(
        ["operation", "message", OURS, *(f"{party} / {OURS}" for party in others)], body
    )


def _systems(campaign: Campaign) -> str:
    """Workloads by size on bare hosts: the time of ours, and the ratio of each other way to it."""
    times, ratios = (at(frame, arm=HOST) for frame in (campaign.times, campaign.systems))
    ours = {
        (row.operation, row.bytes, row.ranks): seconds_text(row.median_s)
        for row in rows(at(times, transport=campaign.ours))
    }
    keys = ["operation", "ranks", "bytes", "transport"]
    body = [
        [
            labels.operation_name(row.operation),
            bytes_text(row.bytes),
            str(row.ranks),
            ours[row.operation, row.bytes, row.ranks],
            labels.transport_name(row.transport),
            _ratio(row),
        ]
        for row in rows(
            ratios if ratios.empty else ratios.sort_values(keys, key=labels.by_operation)
        )
    ]
    return markdown(
        ["workload", "bytes", "ranks", campaign.ours, "other way", f"its time / {campaign.ours}"],
        body,
    )


def _fastest(campaign: Campaign) -> str:
    """By size and ranks on bare hosts: the time of ours, and of the other way that takes least."""
    times, ratios = (at(frame, arm=HOST) for frame in (campaign.times, campaign.systems))
    ours = rows(at(times, transport=campaign.ours))
    cells = {(row.bytes, row.ranks): seconds_text(row.median_s) for row in ours}
    slowest_first = sorted(rows(ratios), key=lambda row: row.ratio, reverse=True)
    best = {(row.bytes, row.ranks): row for row in slowest_first}  # the last of a key stays
    sizes, counts = (sorted({key[place] for key in best}) for place in (0, 1))
    body = [
        [bytes_text(size)]
        + [
            f"{cells[size, count]}; {row.transport} {_ratio(row)}"
            if (row := best.get((size, count)))
            else NOTHING
            for count in counts
        ]
        for size in sizes
    ]
    return markdown(["message", *map(ranks_text, counts)], body)


def _steps(campaign: Campaign) -> str:
    """Operations by MPI: what each step from the host to a container costs, as the median over
    all sizes and at the size that may cost most."""
    steps = {
        (row.mpi, row.transport, row.operation, row.step): row for row in rows(campaign.whole_steps)
    }
    orders: tuple[Iterable[str], ...] = (labels.MPIS, TRANSPORTS, labels.OPERATIONS)
    levels = (in_order({key[at] for key in steps}, order) for at, order in enumerate(orders))
    body = [
        [labels.mpi_name(mpi), transport, labels.operation_name(operation)]
        + [_step(steps.get((mpi, transport, operation, step))) for step in STEPS]
        for mpi, transport, operation in product(*levels)
    ]
    return markdown(["MPI", "transport", "operation", *STEPS], body)


def _step(row: Any) -> str:
    """ "1.04 (0.98 to 1.10); widest 0.93 to 1.26 at 1 KiB"; a dash for no row."""
    return NOTHING if row is None else f"{_ratio(row)}; widest {widest_text(row._asdict())}"


def _wires(campaign: Campaign) -> str:
    """Operations between hosts: ours over the wire's bound, others over that and over ours.

    Beside each time over the bound, in parentheses, the bytes of the busiest link over the least.
    """
    key = ["operation", "bytes", "mpi", "ranks", "binding"]
    near, over = (
        {(*(getattr(row, name) for name in key), row.transport): row for row in rows(frame)}
        for frame in (at(ratios, arm=HOST) for ratios in (campaign.wires, campaign.transports))
    )
    others = [
        party
        for party in in_order(campaign.wires["transport"], TRANSPORTS)
        if party != campaign.ours
    ]
    shown = (campaign.ours, *others)
    body = [
        [
            f"{labels.operation_name(operation)}, {bytes_text(size)}",
            f"{labels.mpi_name(mpi)}, {ranks_text(ranks)} {binding}",
            *(_near(near.get((operation, size, mpi, ranks, binding, party))) for party in shown),
            *(_ratio(over.get((operation, size, mpi, ranks, binding, party))) for party in others),
        ]
        for operation, size, mpi, ranks, binding in dict.fromkeys(place[:-1] for place in near)
    ]
    head = [
        *(f"{party} / bound" for party in shown),
        *(f"{party} / {campaign.ours}" for party in others),
    ]
    return markdown(["operation, message", "MPI, ranks", *head], body)


def _near(row: Any) -> str:
    """ "1.12 (1.00)"; a dash for no row."""
    return NOTHING if row is None else f"{ratio_text(row.over)} ({ratio_text(row.carried)})"


def _ratio(row: Any) -> str:
    """ "1.04 (0.98 to 1.10)"; a dash for no row."""
    if row is None:
        return NOTHING
    return f"{ratio_text(row.ratio)} ({interval_text(row.low, row.high)})"


def table(schema: Mapping[str, Any]) -> str:
    """The fields of a schema as a Markdown table: path, type, meaning."""
    return markdown(["field", "type", "meaning"], _fields(schema, ""))


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    """(path, type, meaning) of every plain value below an object with properties."""
    for name, field in schema["properties"].items():
        required = name in schema.get("required", schema["properties"])
        meaning = field["description"] + ("" if required else "; may be absent")
        yield from _values(field, f"{path}{name}", meaning)


def _values(schema: Mapping[str, Any], path: str, meaning: str) -> Iterator[tuple[str, str, str]]:
    if schema["type"] == "array":
        yield from _values(schema["items"], f"{path}[]", meaning)
    elif "properties" in schema:
        yield from _fields(schema, f"{path}.")
    elif "additionalProperties" in schema:
        yield from _values(schema["additionalProperties"], f"{path}.NAME", meaning)
    else:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        shown = " or ".join(str(_TYPES.get(kind, kind)) for kind in kinds)
        yield f"`{path}`", shown, meaning


UNMEASURED: Mapping[str, Callable[[], str]] = {
    "glossary": _glossary,
    "experiments": _experiments,
}
"""What needs no campaign."""

MEASURED: Mapping[str, Callable[[Campaign], str]] = {
    "headline": lambda campaign: _wrapped(_opening(campaign)),
    "containers": lambda campaign: _wrapped(_containers(campaign)),
    "transports": lambda campaign: _wrapped(" ".join([*_slower(campaign), _conditions(campaign)])),
    "times": _times,
    "systems": _systems,
    "fastest": _fastest,
    "steps": _steps,
    "wires": _wires,
    "best": lambda campaign: "".join(f"- {line}\n" for line in best_flat(campaign)),
}
"""What pages may say of a campaign: {name of a part: what makes its sentences or its table}."""

OF_PROGRAMS: Mapping[str, Callable[[ProgramRuns], str]] = {
    "answer": lambda runs: "".join(_listed(line) for line in program.text(runs)),
    "table": lambda runs: markdown(program.HEAD, program.rows(cost_of(runs))),
}
"""What pages may say of a user's program."""

OF_BENCH: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "headline": lambda bench: _wrapped(stored_bench.headline(bench)),
    "best": lambda bench: _wrapped(stored_bench.sentence(bench)),
    "ratios": lambda bench: markdown(*stored_bench.ratios(bench)),
    "objects": lambda bench: markdown(*stored_bench.objects(bench)),
    "spellings": lambda bench: markdown(*stored_bench.spellings(bench)),
}
OF_REPRODUCING: Mapping[str, Callable[[Path], str]] = {
    "places": reproduce.places,
    "archives": reproduce.archives,
    "unstored": reproduce.unstored,
}
OF_MODELS: Mapping[str, Callable[[Evaluation], str]] = {
    "models": lambda models: _wrapped(cost_models.sentence(models)),
}
