"""The file that says whose turn it is."""

from pathlib import Path

import pytest

from experiments.bench.turn import Turn, Turns, parse

TURN = Turn("bcast", 1024, "mpi", "nonblocking")


def test_the_file_is_there_before_any_rank_goes_on(tmp_path: Path) -> None:
    path, seen = tmp_path / "turn", []
    turns = Turns(path, lambda: seen.append(path.read_text()))
    turns.begin(TURN)
    turns.begin(TURN._replace(bytes=2048))
    assert [parse(text) for text in seen] == [TURN, TURN._replace(bytes=2048)]


def test_one_rank_writes_and_all_meet(tmp_path: Path) -> None:
    met = []
    Turns(None, lambda: met.append(1)).begin(TURN)
    assert met == [1]
    assert list(tmp_path.iterdir()) == []


def test_after_the_end_nobody_has_a_turn(tmp_path: Path) -> None:
    turns = Turns(tmp_path / "turn", lambda: None)
    turns.begin(TURN)
    turns.end()
    assert parse((tmp_path / "turn").read_text()) is None


@pytest.mark.parametrize("torn", ["", '["bcast", 10', "{}", "3", '["bcast"]'])
def test_a_torn_file_holds_no_turn(torn: str) -> None:
    assert parse(torn) is None
