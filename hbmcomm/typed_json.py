"""Values as JSON, read as exact types: for bytes that another process can write.

Reading runs no code of the sender, unlike unpickling: it gives a value of the type that the reader
names, or an error.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

_INTEGERS = range(-(2**63), 2**64)
_SHOWN = 60  # characters of a wrong value, in an error


def write(value: Any) -> bytes:
    """One line of JSON, without its end.

    Args:
        value: Of named tuples, tuples, frozensets, dictionaries of text, text, numbers and None.
    """
    return json.dumps(value, default=sorted, allow_nan=False).encode()


def read(kind: Any, line: bytes, any_kind: Any = None) -> Any:
    """What `write` made of a value of a type.

    Args:
        kind: A type, as in annotations.
        any_kind: The type of each field that is annotated as Any.

    Raises:
        ValueError: It is something else. Integers have 64 bits, other numbers are finite.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"{_shown(line)} is not JSON") from None
    return _typed(kind, value, any_kind)


def _typed(kind: Any, value: Any, any_kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return _typed(any_kind, value, None)
    if origin is UnionType:
        for one in inner:
            with suppress(ValueError):
                return _typed(one, value, any_kind)
    elif origin is Literal:
        if type(value) is str and value in inner:
            return value
    elif origin is dict and type(value) is dict:
        return {key: _typed(inner[1], inner_value, any_kind) for key, inner_value in value.items()}
    elif origin is frozenset and type(value) is list:
        return frozenset(_typed(inner[0], member, any_kind) for member in value)
    elif hasattr(kind, "_fields") and type(value) is list:
        return kind(*_each(get_type_hints(kind).values(), value, any_kind))
    elif origin is tuple and type(value) is list:
        of_any_length = inner[-1] is ...
        return tuple(_each(inner[:1] * len(value) if of_any_length else inner, value, any_kind))
    elif kind is int and type(value) is int:
        if value in _INTEGERS:
            return value
    elif kind is float and type(value) is float:
        if math.isfinite(value):
            return value
    elif kind in (str, bool, NoneType) and type(value) is kind:
        return value
    raise ValueError(f"{_shown(value)} is no {getattr(kind, '__name__', kind)}")


def _each(kinds: Any, values: list[Any], any_kind: Any) -> list[Any]:
    if len(kinds) != len(values):
        raise ValueError(f"{_shown(values)} has {len(values):,} entries, not {len(kinds):,}")
    return [_typed(kind, value, any_kind) for kind, value in zip(kinds, values, strict=True)]


def _shown(value: Any) -> str:
    text = ascii(value[:_SHOWN] if isinstance(value, bytes | str | list) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
