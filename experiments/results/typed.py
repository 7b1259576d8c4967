"""The one reading of a campaign's files: their types, ranges and text, as docs/schemas has them.

A results folder may be anyone's, so that nothing in it is trusted. Every reader goes through
store.py, which names the file in what is raised here. Of JSON Schema this knows what the schemas
use. A field that they do not name is taken: a later version may add one to a format.
"""

import functools
import io
import json
import lzma
import re
import reprlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.model import plain_file
from experiments.model.checkout import ROOT
from experiments.model.launch import EXTERNAL_MPI
from experiments.results.result import Result

MOST_JSON, MOST_SAMPLES = 64 * 2**20, 4 * 2**30  # bytes of a file
MEMORY = 128 * 2**20
"""Bytes of memory that unpacking may take; the writer's setting needs 65 MiB."""
DEEPEST = 24  # tables and lists within each other
LARGEST = 2**63 - 1  # whole number
SHORTEST, LONGEST = 1e-12, 1e9
"""Seconds that an operation takes: less than a cycle of any CPU, and 30 years."""
TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "object": ((dict,), "a table"),
    "array": ((list,), "a list"),
    "string": ((str,), "text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "null": ((type(None),), "null"),
}


class Unfit(ValueError):
    """A file holds what no campaign writes; its text names the field."""


Schema = str | Mapping[str, Any]
"""A schema, or the name of one of docs/schemas; "": any values fit."""


def json_object(path: Path, schema: Schema = "") -> dict[str, Any]:
    """A file that holds one JSON object of printable text and finite numbers, and fits a schema.

    Raises:
        ValueError, OSError: it is missing, torn or something else.
    """
    return parsed(plain_file.read(path, MOST_JSON), schema)


def parsed(content: bytes, schema: Schema = "") -> dict[str, Any]:
    """The JSON object that a file holds, as json_object() has it."""
    text = content.decode("utf-8")
    try:
        values = json.loads(text)
    except RecursionError:
        raise Unfit(f"it holds more than {DEEPEST} lists within each other") from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise Unfit("it holds a number of thousands of digits") from None
    if not isinstance(values, dict):
        raise Unfit("it holds no JSON object")
    check_text(values)
    check(values, schema)
    return values


def unpacked(content: bytes) -> bytes:
    """What an .xz file holds, if that may be JSON: no more bytes than MOST_JSON."""
    xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
    try:
        whole = xz.decompress(content, MOST_JSON + 1)
    except lzma.LZMAError as error:
        raise Unfit(f"it is no .xz file: {error}") from error
    if len(whole) > MOST_JSON:
        raise Unfit(f"it unpacks to more than {MOST_JSON} bytes")
    if not xz.eof or xz.unused_data:
        raise Unfit("it is cut short, or something follows its end")
    return whole


def check_text(values: Any) -> None:
    """Refuse text that cannot be printed, and numbers that are not finite."""
    _refuse(_unprintable(values, ""))


def check(values: Mapping[str, Any], schema: Schema) -> None:
    """Refuse values that do not fit a schema."""
    if schema:
        _refuse(_unfit(values, _schema(schema) if isinstance(schema, str) else schema, ""))


def _refuse(faults: Iterator[str]) -> None:
    if first := next(faults, ""):
        raise Unfit(first)


@functools.cache
def _schema(name: str) -> dict[str, Any]:
    path = ROOT / "docs" / "schemas" / f"{name}.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def _unprintable(value: Any, field: str, depth: int = 0) -> Iterator[str]:
    """What no field may hold, whichever it is."""
    if depth > DEEPEST:
        yield f"{field[:80]} ... holds more than {DEEPEST} lists within each other"
    elif isinstance(value, dict):
        for key, child in value.items():
            if not key.isprintable():
                yield f"{field or 'it'} holds the name {_short(key)}, which is no line of text"
            yield from _unprintable(child, f"{field}.{key}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from _unprintable(child, f"{field}[{number}]", depth + 1)
    elif isinstance(value, str):
        if not value.translate({ord("\n"): None, ord("\t"): None}).isprintable():
            yield f"{field} holds {_short(value)}, with characters that cannot be printed"
    elif isinstance(value, int | float) and not abs(value) <= LARGEST:  # so is NaN
        yield f"{field} holds {_short(value)}, which is no finite number of 64 bits"


def _unfit(value: Any, schema: Mapping[str, Any], field: str) -> Iterator[str]:
    """What a value holds that its schema does not allow."""
    if not _allowed(value, schema):
        yield f"{field or 'it'} holds {_short(value)}, and must be {_described(schema)}"
    elif isinstance(value, dict):
        known, other = schema.get("properties", {}), schema.get("additionalProperties")
        for key in _lacking(value, schema):
            yield f"{field or 'it'} lacks {key}"
        for key, child in value.items():
            if inner := known.get(key, other):
                yield from _unfit(child, inner, f"{field}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from _unfit(child, schema["items"], f"{field}[{number}]")


def _lacking(value: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """The fields that an object lacks."""
    wanted = [*schema.get("required", ())]
    for field, others in schema.get("dependentRequired", {}).items():
        wanted += others if field in value else []
    choices = [subschema["required"] for subschema in schema.get("anyOf", ())]
    if not any(value.keys() >= set(choice) for choice in choices):
        wanted += [key for choice in choices[-1:] for key in choice]
    return [key for key in wanted if key not in value]


def _allowed(value: Any, schema: Mapping[str, Any]) -> bool:
    if not any(_has_type(value, kind) for kind in _types(schema)):
        return False
    if isinstance(value, str):
        return re.fullmatch(str(schema.get("pattern", "(?s:.*)")), value) is not None
    if isinstance(value, list):
        return len(value) <= int(schema.get("maxItems", len(value)))
    if isinstance(value, int | float):
        least: float = schema.get("minimum", value)
        most: float = schema.get("maximum", value)
        return bool(least <= value <= most)
    return True


def _types(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema["type"]
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _has_type(value: Any, kind: str) -> bool:
    return type(value) in TYPES[kind][0]


def _described(schema: Mapping[str, Any]) -> str:
    """ "a whole number, 1 or more"."""
    limits = [
        words.format(schema[key])
        for key, words in (
            ("pattern", "of the form {}"),
            ("minimum", "{} or more"),
            ("maximum", "{} or less"),
            ("maxItems", "of {} at most"),
        )
        if key in schema
    ]
    return ", ".join((" or ".join(TYPES[kind][1] for kind in _types(schema)), *limits))


def _short(value: object) -> str:
    """A value as messages show it: no control character, and not long."""
    try:
        return ascii(value)[:80] if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # a number of thousands of digits
        return "a number of thousands of digits"


def arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz file, all of which are times: numbers of seconds in rows and columns.

    Raises:
        Unfit: it is something else, or packed, or no array of times.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as held:
            if sum(member.file_size for member in held.infolist()) > len(content):
                raise Unfit("it is packed, which no campaign's samples are")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            samples = {key: stored[key] for key in stored.files}
    except Unfit:
        raise
    except Exception as error:  # whatever NumPy's parsers of headers and zipfile end with
        raise Unfit(str(error)[:200] or type(error).__name__) from error
    for key, array in samples.items():
        if not isinstance(array, np.ndarray) or array.dtype not in (np.float64, np.float32):
            raise Unfit(f"array {_short(key)} holds no floating-point numbers")
        if array.ndim != 2 or not array.size:
            raise Unfit(f"array {_short(key)} of shape {array.shape} holds no rows and columns")
        if not ((array >= 0) & (array <= LONGEST)).all():  # false of NaN
            raise Unfit(f"array {_short(key)} holds no times: NaN, negative ones or huge ones")
    return samples


def check_samples(launch: Result, samples: Mapping[str, NDArray[Any]]) -> None:
    """Refuse samples that are not those of a launch's cells.

    Raises:
        Unfit: naming the cell and the array.
    """
    _refuse(_strange(launch, samples))


def _strange(launch: Result, samples: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    ranks, hosts = launch.launch.ranks, len(launch.facts.hosts)
    for number, cell in enumerate(launch.cells):
        if not cell.samples:
            continue
        place = f"cells[{number}]"
        for field, key in (("samples", cell.samples), ("begins", cell.begins)):
            if key and key not in samples:
                yield f"{place}.{field} names {_short(key)}, which its .npz file lacks"
        times = samples[cell.samples]
        rows, columns = times.shape
        wanted = len(cell.columns) or (columns if launch.launch.program in EXTERNAL_MPI else ranks)
        if columns != wanted:
            yield f"{place} has {columns} columns of samples, and not {wanted}"
        timed = rows - cell.warmup
        if timed < 1 or (cell.turn and timed % cell.turn):
            yield (
                f"{place} has {rows} rows of samples, {cell.warmup} of them to warm up, in "
                f"turns of {cell.turn}"
            )
        if not (times.max(axis=1) >= SHORTEST).all():
            yield f"{place} has samples that no operation can take: less than {SHORTEST} s"
        if cell.begins and samples[cell.begins].shape != times.shape:
            yield f"{place}.begins has another shape than its samples"
        if cell.links and {len(cell.links.sent), len(cell.links.received)} != {hosts}:
            yield f"{place}.links is not of {hosts} hosts"
