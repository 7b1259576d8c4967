"""The parts of README.md and docs/ that are made of something else: `./inv docs` writes them.

Such a part is between `<!-- NAME -->` and `<!-- end -->`. Tables of fields come from JSON Schemas,
figures, measured sentences and tables from the campaigns stored in docs/data, the glossary from its
file, docs/reproduce.md from the pages and the archives. A test checks that the pages hold what
would be written.
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from experiments.analysis import cost_of_links, whatif
from experiments.analysis.container_steps import STEPS
from experiments.analysis.cost_cells import of_bench
from experiments.analysis.cost_evaluation import Evaluation, evaluate
from experiments.analysis.findings import BASELINE, OURS, Findings, find
from experiments.analysis.reading import load
from experiments.analysis.selection import at, in_order, rows
from experiments.driver import overview
from experiments.driver.forecast import Host
from experiments.model.arms import HOST
from experiments.model.quantities import NOTHING, counted, ratio_text, seconds_text
from experiments.results.unarchive import opened
from plots import glossary, reproduce
from plots.draw import (
    TOPICS,
    PlotsError,
    drawings,
    encode,
    link_drawings,
    write,
)
from plots.figures import what_if
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.labels import (
    MPIS,
    OPERATIONS,
    by_operation,
    bytes_text,
    floor_text,
    interval_text,
    mpi_name,
    operation_name,
    ranks_text,
    transport_name,
)
from plots.layout.style import TRANSPORTS, style
from plots.tables import cost_models, stored_bench
from plots.tables.columns import widest_text
from plots.text.answers import answers
from plots.text.headline import headline
from plots.text.wire import best_flat

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
    parts: dict[str, Callable[[], str]] = dict(UNMEASURED)
    parts |= {f"reproduce: {name}": partial(make, root) for name, make in OF_REPRODUCING.items()}
    for path in (root / "docs" / "schemas").glob("*.schema.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts[f"fields: {path.name.partition('.')[0]}"] = partial(table, schema)
    written: list[Path] = []
    for archive in sorted((root / DATA).glob("*.tar.xz")):
        name = archive.name.removesuffix(".tar.xz")
        with opened(archive) as results:
            campaign = load(results)
        found = find(campaign)
        parts |= _parts(name, MEASURED, found)
        shown = [each for each in TOPICS if any((root / "docs").rglob(f"{name}-{each}*.svg"))]
        written += _shown(root, name, partial(drawings, found, topics=shown))
        if cost_of_links.are_in(campaign):
            models = evaluate(cost_of_links.of_links(campaign))
            parts |= _parts(name, OF_MODELS, models)
            written += _shown(root, name, partial(link_drawings, models, whatif.MOST_NODES))
    for path in sorted((root / DATA).glob("*.json.xz")):
        bench = stored_bench.load(path)
        name = path.name.removesuffix(".json.xz")
        models = evaluate(of_bench(path.name, bench))
        parts |= _parts(name, OF_BENCH, bench) | _parts(name, OF_MODELS, models)
        written += _shown(root, name, partial(_speedups, models))
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        text = page.read_text(encoding="utf-8")
        if _PART.search(text):
            written.append(write(page, filled(page.name, text, parts).encode()))
    return written


def _parts(
    name: str, makers: Mapping[str, Callable[[Any], str]], found: Any
) -> dict[str, Callable[[], str]]:
    return {f"measured: {name}, {part}": partial(made, found) for part, made in makers.items()}


def filled(page: str, text: str, parts: Mapping[str, Callable[[], str]] | None = None) -> str:
    """A page with its parts; those that need no campaign, where none are given."""
    known = UNMEASURED if parts is None else parts

    def made(match: re.Match[str]) -> str:
        if match[2] not in known:
            raise PlotsError(
                f"{page} has a part {match[2]!r}, and nothing makes it; known are "
                f"{', '.join(sorted(known))}"
            )
        return f"{match[1]}{known[match[2]]()}{match[3]}"

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
    words = [[f"**{word}**", meaning] for word, meaning in glossary.words().items()]
    return _markdown(["word", "meaning"], words)


def _experiments() -> str:
    every = [each.row() for each in overview.every(USUAL_HOST)]
    return _markdown([*overview.HEAD], ([f"`{name}`", *others] for name, *others in every))


def _slower(found: Findings) -> list[str]:
    return [each.sentence for each in answers(found) if each.question.startswith("How much slower")]


def _opening(found: Findings) -> str:
    """The first answer without its details and conditions, which docs/performance.md has."""
    answer = _slower(found)[0].partition(": ")[0]
    return f"{answer}. {counted(found.blocks, 'block')} of arms in turns."


def _containers(found: Findings) -> str:
    said = headline(found)
    return " ".join([*said.sentences, *said.conditions, _conditions(found)])


def _conditions(found: Findings) -> str:
    """What a reader must know beside any ratio of the campaign."""
    return " ".join(
        [f"{counted(found.blocks, 'block')} of arms in turns.", floor_text(found.floors)]
        + [f"{each[0].upper()}{each[1:]}." for each in found.conditions]
    )


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, break_on_hyphens=False)) + "\n"


def _times(found: Findings) -> str:
    """Operations by size on the host: the time with `direct`, and that of others over it."""
    both = (found.times, found.transports)
    times, ratios = (at(frame, environment=HOST, kind=BASELINE) for frame in both)
    over = {(row.operation, row.bytes, row.transport): row for row in rows(ratios)}
    others = [each for each in in_order(times["transport"], TRANSPORTS) if each != OURS]
    ours = at(times, transport=OURS).sort_values(["operation", "bytes"], key=by_operation)
    body = [
        [operation_name(row.operation), bytes_text(row.bytes), seconds_text(row.median_s)]
        + [_ratio(over.get((row.operation, row.bytes, other))) for other in others]
        for row in rows(ours)
    ]
    return _markdown(["operation", "message", OURS, *(f"{each} / {OURS}" for each in others)], body)


def _systems(found: Findings) -> str:
    """Workloads by size on bare hosts: the time of ours, and the ratio of each other way to it."""
    times, ratios = (at(frame, arm=HOST) for frame in (found.times, found.systems))
    ours = {
        (row.operation, row.bytes, row.ranks): seconds_text(row.median_s)
        for row in rows(at(times, transport=found.ours))
    }
    keys = ["operation", "ranks", "bytes", "transport"]
    body = [
        [
            operation_name(row.operation),
            bytes_text(row.bytes),
            str(row.ranks),
            ours[row.operation, row.bytes, row.ranks],
            transport_name(row.transport),
            _ratio(row),
        ]
        for row in rows(ratios if ratios.empty else ratios.sort_values(keys, key=by_operation))
    ]
    return _markdown(
        ["workload", "bytes", "ranks", found.ours, "other way", f"its time / {found.ours}"], body
    )


def _fastest(found: Findings) -> str:
    """By size and ranks on bare hosts: the time of ours, and of the other way that takes least."""
    times, ratios = (at(frame, arm=HOST) for frame in (found.times, found.systems))
    ours = rows(at(times, transport=found.ours))
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
    return _markdown(["message", *map(ranks_text, counts)], body)


def _steps(found: Findings) -> str:
    """Operations by MPI: what each step from the host to a container costs, as the median over
    all sizes and at the size that may cost most."""
    steps = {
        (row.mpi, row.transport, row.operation, row.step): row for row in rows(found.whole_steps)
    }
    orders: tuple[Iterable[str], ...] = (MPIS, TRANSPORTS, OPERATIONS)
    levels = (in_order({key[at] for key in steps}, order) for at, order in enumerate(orders))
    body = [
        [mpi_name(mpi), transport, operation_name(operation)]
        + [_step(steps.get((mpi, transport, operation, step))) for step in STEPS]
        for mpi, transport, operation in product(*levels)
    ]
    return _markdown(["MPI", "transport", "operation", *STEPS], body)


def _step(row: Any) -> str:
    """ "1.04 (0.98 to 1.10); widest 0.93 to 1.26 at 1 KiB"; a dash for no row."""
    return NOTHING if row is None else f"{_ratio(row)}; widest {widest_text(row._asdict())}"


def _wires(found: Findings) -> str:
    """Operations between hosts: ours over the wire's bound, others over that and over ours.

    Beside each time over the bound, in parentheses, the bytes of the busiest link over the least.
    """
    key = ["operation", "bytes", "mpi", "ranks", "binding"]
    near, over = (
        {(*(getattr(row, name) for name in key), row.transport): row for row in rows(frame)}
        for frame in (at(each, arm=HOST) for each in (found.wires, found.transports))
    )
    others = [each for each in in_order(found.wires["transport"], TRANSPORTS) if each != found.ours]
    shown = (found.ours, *others)
    body = [
        [
            f"{operation_name(operation)}, {bytes_text(size)}",
            f"{mpi_name(mpi)}, {ranks_text(ranks)} {binding}",
            *(_near(near.get((operation, size, mpi, ranks, binding, each))) for each in shown),
            *(_ratio(over.get((operation, size, mpi, ranks, binding, each))) for each in others),
        ]
        for operation, size, mpi, ranks, binding in dict.fromkeys(place[:-1] for place in near)
    ]
    head = [*(f"{each} / bound" for each in shown), *(f"{each} / {found.ours}" for each in others)]
    return _markdown(["operation, message", "MPI, ranks", *head], body)


def _near(row: Any) -> str:
    """ "1.12 (1.00)"; a dash for no row."""
    return NOTHING if row is None else f"{ratio_text(row.over)} ({ratio_text(row.carried)})"


def _ratio(row: Any) -> str:
    """ "1.04 (0.98 to 1.10)"; a dash for no row."""
    if row is None:
        return NOTHING
    return f"{ratio_text(row.ratio)} ({interval_text(row.low, row.high)})"


def _markdown(head: list[str], body: Iterable[Sequence[str]]) -> str:
    top, *rest = (f"| {' | '.join(line)} |\n" for line in (head, *body))
    return "".join([top, "|---" * len(head), "|\n", *rest])


def table(schema: Mapping[str, Any]) -> str:
    """The fields of a schema as a Markdown table: path, type, meaning."""
    return _markdown(["field", "type", "meaning"], _fields(schema, ""))


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    """(path, type, meaning) of every plain value below an object with properties."""
    for name, each in schema["properties"].items():
        required = name in schema.get("required", schema["properties"])
        meaning = each["description"] + ("" if required else "; may be absent")
        yield from _values(each, f"{path}{name}", meaning)


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

MEASURED: Mapping[str, Callable[[Findings], str]] = {
    "headline": lambda found: _wrapped(_opening(found)),
    "containers": lambda found: _wrapped(_containers(found)),
    "transports": lambda found: _wrapped(" ".join([*_slower(found), _conditions(found)])),
    "times": _times,
    "systems": _systems,
    "fastest": _fastest,
    "steps": _steps,
    "wires": _wires,
    "best": lambda found: "".join(f"- {line}\n" for line in best_flat(found)),
}
"""What pages may say of a campaign: {name of a part: what makes its sentences or its table}."""

OF_BENCH: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "headline": lambda bench: _wrapped(stored_bench.headline(bench)),
    "best": lambda bench: _wrapped(stored_bench.sentence(bench)),
    "ratios": lambda bench: _markdown(*stored_bench.ratios(bench)),
}
OF_REPRODUCING: Mapping[str, Callable[[Path], str]] = {
    "places": reproduce.places,
    "archives": reproduce.archives,
    "unstored": reproduce.unstored,
}
OF_MODELS: Mapping[str, Callable[[Evaluation], str]] = {
    "models": lambda models: _wrapped(cost_models.sentence(models)),
}
