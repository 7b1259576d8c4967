"""Numbers with units are read whole or not at all."""

import pytest

from hbmcomm.quantities import BYTES, parse_quantity


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("4096 B", 4096),
        (" 64KiB ", 2**16),
        ("64k", 2**16),
        ("3 mb", 3 * 2**20),
        ("2TiB", 2**41),
    ],
)
def test_a_number_is_multiplied_by_its_unit(text: str, nbytes: int) -> None:
    assert parse_quantity(text, BYTES) == nbytes


@pytest.mark.parametrize("text", ["", "KiB", "1.5MiB", "-1", "64kx", "1 KiB 2", "9" * 20])
def test_anything_else_is_none(text: str) -> None:
    assert parse_quantity(text, BYTES) is None


def test_a_unit_of_another_table_is_none() -> None:
    assert parse_quantity("1 ms", {"": 1, "us": 1, "ms": 1000}) == 1000
    assert parse_quantity("1 KiB", {"": 1, "us": 1, "ms": 1000}) is None
