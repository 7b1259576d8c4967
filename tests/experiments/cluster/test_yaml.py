"""YAML that people can read, and that a reader of YAML takes for the same values."""

import yaml as reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.cluster import yaml

TEXT = st.text("aß0-:#'\"{}[],&*!|>%@`~ ", max_size=9)
SCALARS = st.booleans() | st.integers() | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=9,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1))
def test_what_is_written_is_read_again(document: dict[str, object]) -> None:
    text = yaml.written(document, {"second": 2})
    assert list(reader.load_all(text, reader.BaseLoader))[1] == {"second": "2"}
    assert next(reader.safe_load_all(text)) == document


def test_a_text_of_several_lines_stays_readable() -> None:
    assert yaml.written({"a": {"text": "Host *\n  Port 1\n"}, "list": [[1], {"b": True}]}) == (
        "a:\n  text: |\n    Host *\n      Port 1\nlist:\n  - - 1\n  - b: true\n"
    )
