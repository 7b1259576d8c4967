"""What a launch reports while it runs."""

from pathlib import Path

import pytest

from experiments.measure import lines
from experiments.measure.lines import Progress


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word is written."""
    monkeypatch.setattr(lines, "SECONDS", -1.0)


def test_operations_count_within_a_slow_cell_and_over_all(at_once: None, tmp_path: Path) -> None:
    shown = Progress(tmp_path / "progress")
    shown.cells(3, 50)
    assert (tmp_path / "progress").read_text() == "3 50 0"
    shown.tick(10)
    shown.tick(20)
    assert (tmp_path / "progress").read_text() == "3 50 30"
    shown.cells(4, 50)
    shown.tick(10)
    assert (tmp_path / "progress").read_text() == "4 50 40"


def test_it_writes_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SECONDS", 3600.0)
    shown = Progress(tmp_path / "progress")
    shown.cells(0, 2)
    shown.tick(10)
    assert (tmp_path / "progress").read_text() == "0 2 0"


def test_ranks_without_a_file_say_nothing(at_once: None, tmp_path: Path) -> None:
    Progress(None).cells(1, 2)
    assert not list(tmp_path.iterdir())
