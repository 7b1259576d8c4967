"""Amounts as boxes hold them."""

from collections.abc import Callable
from typing import Any

import pytest

from plots.analysis.page_placement import Node, places
from plots.layout.style import KINDS
from plots.numa_map.node_boxes import amount, letters, sort, unit


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0 B"),
        (4096, "4 KiB"),
        (2**29, "512 MiB"),
        (1000 * 2**20, "0.977 GiB"),
        (3 * 2**29, "1.5 GiB"),
        (1_468_006_400, "1.37 GiB"),
    ],
)
def test_amounts_have_three_digits_and_a_unit(size: int, told: str) -> None:
    assert amount(size) == told


def test_where_a_unit_is_given_a_small_number_remains() -> None:
    sizes = [3 * 2**29, 2**29]
    assert unit(sizes) == "GiB"
    assert [amount(size, "GiB") for size in sizes] == ["1.5", "0.5"]
    assert amount(113 * 2**30, "GiB") == "113"


def test_letters_are_those_of_the_longest_number_and_amount(
    launched: Callable[..., dict[str, Any]],
) -> None:
    (place,) = places([launched("xeon-max-flat-snc4", ranks=1)])
    assert letters(place, [3 * 2**29, 2**29]) == len("15") + len("1.5")
    assert letters(place, [0]) == len("15") + len("0")


def test_nodes_are_told_apart_by_cpus_and_by_hbm() -> None:
    def kind(cpus: tuple[int, ...], is_hbm: bool) -> tuple[str, str]:
        return sort(Node(0, cpus, 2**30, (), (), is_hbm))

    assert kind((0,), False) == (KINDS["regular"].colour, "node with CPUs")
    assert kind((), True) == (KINDS["hbw"].colour, "HBM, no CPUs")
    assert kind((0,), True) == (KINDS["hbw"].colour, "HBM, with CPUs")
    assert kind((), False)[1] == "other memory, no CPUs"
