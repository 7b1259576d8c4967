"""Numbers with units are read whole or not at all."""

from hbmcomm.quantities import BYTES, parse_quantity


def test_a_number_is_multiplied_by_its_unit() -> None:
    sizes = {"0": 0, "4096 B": 4096, " 64KiB ": 2**16, "64k": 2**16, "3 mb": 3 * 2**20}
    sizes["2TiB"] = 2**41
    assert {text: parse_quantity(text, BYTES) for text in sizes} == sizes


def test_anything_else_is_none() -> None:
    for text in ("", "KiB", "1.5MiB", "-1", "64kx", "1 KiB 2", "9" * 20):
        assert parse_quantity(text, BYTES) is None, text


def test_a_unit_of_another_table_is_none() -> None:
    assert parse_quantity("1 ms", {"": 1, "us": 1, "ms": 1000}) == 1000
    assert parse_quantity("1 KiB", {"": 1, "us": 1, "ms": 1000}) is None
