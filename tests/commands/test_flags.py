"""Positional words of a command line."""

import pytest

from commands.flags import leading, leading_path, whole_number
from experiments.model.errors import ExperimentsError
from tests.refusals import refusal


def test_the_first_word_of_a_task_is_its_campaign_where_it_is_a_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = ("report quick.tar.xz", "report results/quick --out x", "report .")
    for words in (*paths, "report", "report --out x", "report plot", "plot report", "report -h"):
        monkeypatch.setattr("sys.argv", ["invoke", *words.split()])
        assert leading_path("report", "results") == ["results"] * (words in paths), words


def test_words_right_behind_a_task_are_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["action", "count"]
    for words, count in {"": 0, "up": 1, "up 4 --rate x": 2, "--rate x": 0}.items():
        monkeypatch.setattr("sys.argv", ["invoke", "hosts", *words.split()])
        assert leading("hosts", *arguments) == arguments[:count], words


def test_what_is_no_whole_number_is_refused() -> None:
    for text in ("9" * 5000, "²", "-1", "1.5"):
        answer = refusal(ExperimentsError, whole_number, "blocks", text, 1)
        assert answer == f"--blocks {text!r} must be a whole number, 1 or more"
