"""The table of whole trainings."""

from experiments.implementations.daso_seeds import to_table


def test_each_seed_has_a_row_and_the_last_row_has_medians() -> None:
    table = to_table({1: {"s": 1.0}, 4: {"s": 2.0}, 5: {"s": 9.0}}).splitlines()
    assert table[0] == "| seed | s |" and table[1] == "| --- | --- |"
    assert table[2:] == ["| 1 | 1.000 |", "| 4 | 2.000 |", "| 5 | 9.000 |", "| median | 2.000 |"]
