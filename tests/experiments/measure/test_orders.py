"""Answers are read as they were written; what anyone else writes is one error."""

import pytest

from experiments.measure.orders import answers_of, line_of_answers
from experiments.schedule.turns import Answer

FIT = '{"rank": 0, "answers": [{}]}'
"""The fields of an answer have defaults."""
NO_SECONDS = ("NaN", "1e999", "-1", "true", '"1"', "null", "9" * 400)


def test_answers_come_back_as_they_were() -> None:
    answers = [Answer(1e-6, 4, True), Answer(narrow=True), Answer(2.0, pace=3e-6)]
    assert answers_of(line_of_answers(1, answers), 2, 3) == (1, answers)
    assert answers_of(FIT, 1, 1) == (0, [Answer()])


def test_what_is_no_answer_is_one_error_in_a_line() -> None:
    for line in (
        *("", "x", "[]", '"rank"', "{}", "[" * 5000, "1" * 5000, "\x1b[2J"),
        *(FIT.replace("0", rank) for rank in ("2", "-1", "true")),
        *(FIT.replace("{}", answers) for answers in ("", "{}, {}", "7", '{"cell": 1}')),
    ):
        with pytest.raises(ValueError, match="is no answer of one of 2 ranks to 1 orders") as error:
            answers_of(line, 2, 1)
        assert str(error.value).isprintable() and len(str(error.value)) < 200, line


def test_values_of_other_types_and_ranges_are_no_answers() -> None:
    for name, values in {
        "seconds": NO_SECONDS,
        "pace": NO_SECONDS,
        "group": ("0", "1.5", "true", "9" * 400),
        "tight": ("1", "null"),
        "narrow": ("0", '"x"'),
    }.items():
        for value in values:
            with pytest.raises(ValueError, match="is no answer"):
                answers_of(FIT.replace("{}", f'{{"{name}": {value}}}'), 1, 1)
