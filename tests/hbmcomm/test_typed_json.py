"""What is read is of the type that was asked for, whatever the bytes are."""

import json
import pickle
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hbmcomm import typed_json


class Leaf(NamedTuple):
    number: int
    share: float


class Tree(NamedTuple):
    name: Literal["a", "b"]
    leaf: Leaf | None
    numbers: tuple[int, ...]
    cpus: frozenset[int]
    sizes: dict[str, int]
    extra: Any
    is_new: bool


INTEGERS = st.integers(-(2**63), 2**64 - 1)
LEAVES = st.builds(Leaf, INTEGERS, st.floats(allow_nan=False, allow_infinity=False))
TREES = st.builds(
    Tree,
    st.sampled_from(["a", "b"]),
    st.none() | LEAVES,
    st.lists(INTEGERS, max_size=3).map(tuple),
    st.frozensets(INTEGERS, max_size=3),
    st.dictionaries(st.text(max_size=3), INTEGERS, max_size=3),
    st.text(max_size=5),
    st.booleans(),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=12,
)


@settings(max_examples=50)
@given(TREES)
def test_what_is_written_is_read(tree: Tree) -> None:
    line = typed_json.write(tree)
    parsed = typed_json.read(Tree, line, str)
    assert parsed == tree
    assert list(map(type, parsed)) == list(map(type, tree))
    assert b"\n" not in line


@given(st.binary(max_size=40) | JSON.map(json.dumps).map(str.encode))
def test_anything_else_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        typed_json.read(Tree, line, str)


@pytest.mark.parametrize(
    ("kind", "line", "why"),
    [
        (int, b"true", "True is no int"),
        (int, b"1" * 30, "is no int"),
        (int, b"1" * 5000, "is not JSON"),
        (float, b"NaN", "nan is no float"),
        (float, b"1e999", "inf is no float"),
        (tuple[int, int], b"[1]", "has 1 entries, not 2"),
        (Leaf, b'{"number": 1, "share": 1.0}', "is no Leaf"),
        (dict[str, int], b'{"a": "x"}', "'x' is no int"),
        (Literal["a"], b'["a"]', "is no "),
        (list, b"[" * 100_000, "is not JSON"),
        (Leaf, pickle.dumps(Leaf(1, 1.0)), "is not JSON"),
    ],
)
def test_the_error_shows_what_is_wrong(kind: Any, line: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        typed_json.read(kind, line)
