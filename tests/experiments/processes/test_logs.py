"""The last lines of a log."""

from pathlib import Path

from experiments.processes.logs import last_lines


def test_blank_lines_at_the_end_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n\nthree\n\n")
    assert last_lines(log, 1) == ["three"]
    assert last_lines(log, 3) == ["two", "", "three"]
    assert last_lines(log, 9) == ["one", "two", "", "three"]


def test_an_empty_log_and_none_have_no_lines(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n")
    assert last_lines(tmp_path / "log", 3) == last_lines(tmp_path / "none", 3) == []
