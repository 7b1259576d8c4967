"""The parts of docs/ that are made of something else: tables of fields, figures of campaigns.

`./inv docs` writes them; a test checks that they are what it would write.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.unarchive import opened
from plots.draw import draw, write

PAGE = "results-format.md"
_FIELDS = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TYPES: Mapping[str, str] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "table",
}


def refresh(docs: Path) -> list[Path]:
    """Write every made part of the folder docs/ anew; answer with the files."""
    page = docs / PAGE
    text = page.read_text(encoding="utf-8")
    written = [write(page, _FIELDS.sub(lambda match: _filled(docs, match), text).encode())]
    for archive in sorted((docs / "data").glob("*.tar.xz")):
        written += _figures(docs, archive)
    return written


def _filled(docs: Path, match: re.Match[str]) -> str:
    schema = json.loads((docs / "schemas" / f"{match[2]}.schema.json").read_text(encoding="utf-8"))
    return f"{match[1]}{table(schema)}{match[3]}"


def _figures(docs: Path, archive: Path) -> Iterator[Path]:
    """The campaign's figures that docs/ shows, named campaign-figure.svg."""
    name = archive.name.removesuffix(".tar.xz")
    with opened(archive) as results, tempfile.TemporaryDirectory() as place:
        for drawn in draw(results, Path(place), ("svg",)):
            shown = docs / f"{name}-{drawn.name}"
            if shown.exists():
                yield write(shown, drawn.read_bytes())


def table(schema: Mapping[str, Any]) -> str:
    """The fields of a schema as a Markdown table: path, type, meaning."""
    rows = (f"| `{path}` | {kind} | {meaning} |\n" for path, kind, meaning in _fields(schema, ""))
    return "| field | type | meaning |\n|---|---|---|\n" + "".join(rows)


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    """(path, type, meaning) of every plain value below an object with properties."""
    for name, each in schema["properties"].items():
        absent = "" if name in schema.get("required", schema["properties"]) else "; may be absent"
        yield from _values(each, f"{path}{name}", each["description"] + absent)


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
