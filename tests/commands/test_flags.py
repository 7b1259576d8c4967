"""Positional words of a command line."""

import pytest

from commands.flags import leading, leading_path, whole_number
from experiments.model.errors import ExperimentsError


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("report", []),
        ("report --out x", []),
        ("report plot", []),
        ("plot report", []),
        ("report -h", []),
        ("report quick.tar.xz", ["results"]),
        ("report results/quick --out x", ["results"]),
        ("report .", ["results"]),
    ],
)
def test_the_first_word_of_a_task_is_its_campaign_where_it_is_a_path(
    words: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["invoke", *words.split()])
    assert leading_path("report", "results") == arguments


@pytest.mark.parametrize(
    ("words", "arguments"),
    [("", []), ("up", ["action"]), ("up 4 --rate x", ["action", "count"]), ("--rate x", [])],
)
def test_words_right_behind_a_task_are_its_arguments(
    words: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["invoke", "hosts", *words.split()])
    assert leading("hosts", "action", "count") == arguments


@pytest.mark.parametrize("text", ["9" * 5000, "²", "-1", "1.5"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ExperimentsError, match=r"--blocks .* must be a whole number, 1 or more"):
        whole_number("blocks", text, 1)
