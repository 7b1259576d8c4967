"""Reads the tables of a file that somebody wrote: what is not among the choices is refused.

A typo is answered with the file, the key and the nearest valid name. Knows no file's form.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from experiments.model.errors import ExperimentsError


class SpecError(ExperimentsError):
    """An experiment, or a flag that changes one, says something that cannot be meant."""


def table_of(values: Mapping[str, Any], key: str, source: str) -> Mapping[str, Any]:
    """The table below a key, empty where there is none."""
    table = values.get(key, {})
    if not isinstance(table, Mapping):
        raise SpecError(f"{source}: {key} must be a table, [{key}]; found {table!r}")
    return table


@dataclass(frozen=True)
class Chooser:
    """Reads the keys of one table and refuses what is not among the choices.

    Attributes:
        source: the file, as messages name it.
        section: the table's name in it.
    """

    table: Mapping[str, Any]
    source: str
    section: str

    def one(self, key: str, choices: tuple[str, ...], default: str) -> str:
        value = self.table.get(key, default)
        if value not in choices:
            raise SpecError(f"{self.source}: {unknown(key, value, choices)} [{self.section}]")
        return str(value)

    def many(self, key: str, choices: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
        found = self.any(key, choices, default)
        if not found:
            raise SpecError(f"{self.source}: {key} in [{self.section}] must be a list of names")
        return found

    def any(self, key: str, choices: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
        """As many(), none included."""
        values = self.table.get(key, default)
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise SpecError(f"{self.source}: {key} in [{self.section}] must be a list of names")
        values = tuple(values)
        for value in values:
            if value not in choices:
                raise SpecError(f"{self.source}: {unknown(key, value, choices)} [{self.section}]")
        return tuple(dict.fromkeys(values))

    def count(self, key: str, default: int) -> int:
        value = self.table.get(key, default)
        if type(value) is not int or value < 1:
            raise SpecError(
                f"{self.source}: {key} {value!r} in [{self.section}] must be a whole number, "
                "1 or more"
            )
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.table.get(key, default)
        if not isinstance(value, bool):
            raise SpecError(
                f"{self.source}: {key} {value!r} in [{self.section}] must be true or false"
            )
        return value


def positive(values: object) -> bool:
    """Whether it is a list of whole numbers from 1 up."""
    return (
        isinstance(values, list | tuple)
        and len(values) > 0
        and all(type(value) is int and value > 0 for value in values)
    )


def known_keys(table: Mapping[str, Any], form: type, source: str, section: str) -> None:
    """Refuse a key that is no field of the dataclass."""
    valid = [item.name for item in fields(form)]
    for key in table:
        if key not in valid:
            place = f" in [{section}]" if section else ""
            raise SpecError(f"{source}: {unknown('key', key, valid)}{place}")


def unknown(what: str, value: object, choices: Iterable[str]) -> str:
    """What to say of a name that is not among the choices."""
    known = list(choices)
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {what} {value!r}; {hint}Known: {', '.join(known)}"
