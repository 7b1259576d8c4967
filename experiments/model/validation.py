"""Values that a user wrote, validated by pydantic; its errors as messages for that user.

For the driver: ranks have no pydantic, and no module that they import may import this one.
"""

import dataclasses
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic.fields import FieldInfo

from experiments.model import plain_file
from experiments.model.errors import SpecError, unknown
from experiments.model.quantities import parse_names

MOST_TOML = 2**20  # bytes of a file
DEEPEST = 8  # tables and lists within each other


class Form(BaseModel):
    """A table of a file.

    The title of a field completes the message "KEY VALUE must be ...". A validator raises
    ValueError with a message of its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


Table = TypeVar("Table")
"""A Form, or a dataclass of pydantic."""


def toml(path: Path, source: str) -> dict[str, Any]:
    """What a TOML file holds.

    Args:
        source: the file, as messages name it.

    Raises:
        SpecError: it is no plain file, not valid, or nests tables without end.
        OSError: it cannot be read.
    """
    try:
        values = tomllib.loads(plain_file.read(path, MOST_TOML, follow=True).decode("utf-8"))
        nested = _nested(values, DEEPEST)
    except ValueError as error:
        raise SpecError(f"{source} is not valid TOML: {error}; mend that line") from error
    except RecursionError:
        nested = True
    if nested:
        raise SpecError(
            f"{source} has more than {DEEPEST} tables or lists within each other; take some out"
        )
    return values


def _nested(value: Any, most: int) -> bool:
    """Whether more than so many tables or lists are within each other."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_nested(child, most - 1) for child in inner)


def read(form: type[Table], values: object, source: str, stored: bool = False) -> Table:
    """The validated values of a file.

    Args:
        source: the file, as messages name it.
        stored: leave out unknown keys; validators ask is_stored().

    Raises:
        SpecError: naming source, table and key, what was found, and what would be valid.
    """
    try:
        adapter = TypeAdapter(form)
        return adapter.validate_python(values, extra="ignore" if stored else None, context=stored)
    except ValidationError as error:
        fault = _damage(source, error) if stored else _message(form, values, source, error)
        raise SpecError(fault) from error


def patched(table: Table, changes: Mapping[str, Any], source: str) -> Table:
    """A dataclass of pydantic with other values, all validated; raises as read() does."""
    try:
        return dataclasses.replace(table, **changes)  # type: ignore[type-var]
    except ValidationError as error:
        raise SpecError(_message(type(table), changes, source, error)) from error


def is_stored(info: ValidationInfo) -> bool:
    """Whether a campaign stored what is read, perhaps on another machine or by another version."""
    return bool(info.context)


def whole(least: int, most: int | None = None) -> Any:
    """A field for a whole number within limits, both included."""
    limits = f"{least} or more" if most is None else f"{least} to {most}"
    return Field(strict=True, ge=least, le=most, title=f"a whole number, {limits}")


Text = Annotated[str, Field(strict=True, min_length=1, title="a line of text")]


def _line(value: str, info: ValidationInfo) -> str:
    if not (is_stored(info) or value.isprintable()):
        raise ValueError(f"{info.field_name} {value!r} must be a line of text")
    return value


def _file_name(value: str, info: ValidationInfo) -> str:
    if not (is_stored(info) or re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value)):
        raise ValueError(
            f"{info.field_name} {value!r} must be a name of letters, digits, '.', '_' and '-', "
            "a letter or digit first"
        )
    return value


Line = Annotated[Text, AfterValidator(_line)]
FileName = Annotated[
    str,
    Field(
        strict=True,
        title="a name",
        json_schema_extra={"pattern": "^[A-Za-z0-9][A-Za-z0-9 ._+-]*$"},  # of older ones, too
    ),
    AfterValidator(_file_name),
]
"""What becomes part of the names of folders, jobs and containers."""
Flag = Annotated[bool, Field(strict=True, title="true or false")]
Count = Annotated[int, whole(1)]
Number = Annotated[int, Field(strict=True, ge=0)]
A_LIST = Field(title="a list of whole numbers")
Numbers = Annotated[tuple[Number, ...], A_LIST]
Name = Annotated[
    str,
    Field(
        strict=True,
        title="a name",
        json_schema_extra={"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"},  # of a stored one
    ),
]
AnyNames = Annotated[tuple[Name, ...], Field(title="a list of names")]
Names = Annotated[tuple[Name, ...], Field(min_length=1, title="a list of names")]


def among(*choices: str, shown: Mapping[str, str] = MappingProxyType({})) -> AfterValidator:
    """Refuses a name, or one of several, that is not among the choices; drops repeated names.

    Takes any that a campaign stored.

    Args:
        shown: {choice: another spelling of it, which is understood and shown}.
    """
    names = {choice: shown.get(choice, choice) for choice in choices}

    def check(value: Any, info: ValidationInfo) -> Any:
        if is_stored(info):
            return value
        given = (value,) if isinstance(value, str) else value
        try:
            meant = parse_names(str(info.field_name), given, names)
        except SpecError as error:
            raise ValueError(str(error)) from None
        return meant[0] if isinstance(value, str) else meant

    return AfterValidator(check)


def _damage(source: str, error: ValidationError) -> str:
    """What to say of what no program wrote."""
    first = error.errors()[0]
    keys = [source, *(key for key in first["loc"] if isinstance(key, str))]
    return f"{'.'.join(keys)} cannot be so: {first['msg'].removeprefix('Value error, ')}"


UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
"""Of a Form, and of a dataclass."""


class _Where(NamedTuple):
    """A value's place in a file.

    Attributes:
        table: "" for the top one.
        form: of that table.
        key: in that table, "" where the table itself is meant.
        path: all keys from the top to this one.
    """

    table: str
    form: type
    key: str
    path: tuple[int | str, ...]


def _message(form: type, values: object, source: str, error: ValidationError) -> str:
    """What to say of the first mistake; a mistyped key explains others, and comes first."""
    every = error.errors()
    first = next((mistake for mistake in every if mistake["type"] in UNKNOWN_KEY), every[0])
    raised = first.get("ctx", {}).get("error")
    own = isinstance(raised, ValueError)
    where = _where(form, first["loc"], whole_table=own)
    place = ", ".join(filter(None, (source, where.table)))
    if own:
        return f"{place}: {raised}"
    if first["type"] in UNKNOWN_KEY:
        return f"{place}: {unknown('key', where.key, _fields(where.form))}"
    if not where.key:
        return f"{place} must hold a table; found {first['input']!r}"
    field = _fields(where.form)[where.key]
    if first["type"] == "missing":
        return f"{place}: {where.key} is missing; give it as {_described(where.key, field)}"
    if first["type"] in ("model_type", "dataclass_type"):
        return f"{place}: {where.key} must be a table, [{where.key}]; found {first['input']!r}"
    given = _at(values, where.path)
    return f"{place}: {where.key} {given!r} must be {_described(where.key, field)}"


def _fields(form: type) -> Mapping[str, FieldInfo]:
    fields: Mapping[str, FieldInfo] = form.__pydantic_fields__  # type: ignore[attr-defined]
    return fields


def _where(form: type, loc: Sequence[int | str], whole_table: bool) -> _Where:
    """Where pydantic's location is in the file.

    Args:
        whole_table: a location that is a table means the table, not a key in the one around it.
    """
    path, rest = "", list(loc)
    while rest:
        field = _fields(form).get(str(rest[0]))
        inner = _inner(field.annotation) if field else None
        if inner is None:
            break
        several = get_origin(field.annotation) in (tuple, dict) if field else False
        steps = 2 if several else 1
        if len(rest) < steps or (len(rest) == steps and not whole_table):
            break
        name = str(rest[0]) if steps == 1 else f"{rest[0]}.{rest[1]}"
        path = f"{rest[0]} {rest[1]}" if isinstance(rest[steps - 1], int) else f"[{name}]"
        form, rest = inner, rest[steps:]
    key = str(rest[0]) if rest else ""
    return _Where(path, form, key, tuple(loc[: len(loc) - len(rest) + 1]))


def _inner(annotation: Any) -> type | None:
    """The form of a field's table or tables, None for a plain value."""
    if isinstance(annotation, type) and hasattr(annotation, "__pydantic_fields__"):
        return annotation
    return next(filter(None, map(_inner, get_args(annotation))), None)


def _described(key: str, field: FieldInfo) -> str:
    if _inner(field.annotation):
        return f"a table, [{key}]"
    return field.title or "as in other files"


def _at(values: Any, path: Sequence[int | str]) -> object:
    """What the file holds there."""
    for step in path:
        values = values[step]
    return values
