"""Plain values as YAML in block style, texts of several lines as they are. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


def written(*documents: Mapping[str, Any]) -> str:
    """Some documents as one text.

    Args:
        documents: of mappings, lists, strings, numbers and booleans; keys are plain words.
    """
    return "---\n".join("".join(f"{line}\n" for line in _lines(each)) for each in documents)


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _entry(f"{key}:", each)
    else:
        for each in value:
            first, *rest = _lines(each) if _nests(each) else [_scalar(each)]
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)


def _entry(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.endswith("\n"):
        yield f"{key} |"
        yield from (f"  {line}" for line in value.splitlines())
    elif _nests(value):
        yield key
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{key} {_scalar(value)}"


def _nests(value: Any) -> bool:
    return bool(value) and not isinstance(value, str | int | float)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
