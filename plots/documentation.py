"""The parts of README.md and docs/ that are made of something else: `./inv docs` writes them.

Tables of fields come from JSON Schemas, figures and measured sentences from the campaigns stored in
docs/data. A test checks that they are what would be written.
"""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.reading import load
from experiments.unarchive import opened
from plots.answers import answers
from plots.draw import PlotsError, drawings, encode, write
from plots.findings import Findings, find
from plots.headline import headline
from plots.labels import percent_text
from plots.sheet import Drawing

DATA = Path("docs/data")
WIDTH = 100
_FIELDS = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MEASURED = re.compile(r"(<!-- measured: (\w+), (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TYPES: Mapping[str, str] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "table",
}


def refresh(root: Path) -> list[Path]:
    """Write every made part anew, of the checkout in `root`; answer with the files."""
    return [*_page(root), *_campaigns(root)]


def _page(root: Path) -> Iterator[Path]:
    docs = root / "docs"
    page = docs / "results-format.md"

    def filled(match: re.Match[str]) -> str:
        schema = (docs / "schemas" / f"{match[2]}.schema.json").read_text(encoding="utf-8")
        return f"{match[1]}{table(json.loads(schema))}{match[3]}"

    yield write(page, _FIELDS.sub(filled, page.read_text(encoding="utf-8")).encode())


def _campaigns(root: Path) -> Iterator[Path]:
    """Figures that docs/ shows, named campaign-figure.svg; then what README.md says of them all."""
    said: dict[tuple[str, str], str] = {}
    for archive in sorted((root / DATA).glob("*.tar.xz")):
        name = archive.name.removesuffix(".tar.xz")
        with opened(archive) as results:
            found = find(load(results))
        said |= {(name, part): text for part, text in sentences(found).items()}
        for drawing in drawings(found):
            shown = root / "docs" / f"{name}-{drawing.name}.svg"
            if isinstance(drawing, Drawing) and shown.exists():
                yield write(shown, encode(drawing, "svg"))
    readme = root / "README.md"

    def filled(match: re.Match[str]) -> str:
        if (match[2], match[3]) not in said:
            raise PlotsError(
                f"README.md speaks of {match[2]}, {match[3]}: {DATA} has no such thing"
            )
        return f"{match[1]}{_wrapped(said[match[2], match[3]])}{match[4]}"

    yield write(readme, _MEASURED.sub(filled, readme.read_text(encoding="utf-8")).encode())


def sentences(found: Findings) -> dict[str, str]:
    """What README.md may say of a campaign: {"containers": ..., "transports": ...}."""
    slower = [
        f"{each.sentence.partition(': ')[0]}."
        for each in answers(found)
        if each.question.startswith("How much slower")
    ]
    floor = f"Noise floor {percent_text(found.floor)}; {found.blocks} blocks of arms in turns."
    return {
        "containers": " ".join([*headline(found), floor]),
        "transports": " ".join([*slower, floor]),
    }


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, break_on_hyphens=False)) + "\n"


def table(schema: Mapping[str, Any]) -> str:
    """The fields of a schema as a Markdown table: path, type, meaning."""
    rows = (f"| `{path}` | {kind} | {meaning} |\n" for path, kind, meaning in _fields(schema, ""))
    return "| field | type | meaning |\n|---|---|---|\n" + "".join(rows)


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
        yield path, " or ".join(str(_TYPES.get(kind, kind)) for kind in kinds), meaning
