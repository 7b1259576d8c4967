"""The last lines of a log, and what ranks keep up to date: of plain files alone."""

import os
import socket
from pathlib import Path

import pytest

from experiments.processes import logs
from experiments.processes.logs import last_lines, small_text


def test_blank_lines_at_the_end_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n\nthree\n\n")
    assert last_lines(log, 1) == ["three"]
    assert last_lines(log, 3) == ["two", "", "three"]
    assert last_lines(log, 9) == ["one", "two", "", "three"]


def test_an_empty_log_and_none_have_no_lines(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n")
    assert last_lines(tmp_path / "log", 3) == last_lines(tmp_path / "none", 3) == []


def test_what_is_no_small_file_of_text_is_nothing(tmp_path: Path) -> None:
    file, path = tmp_path / "file", tmp_path / "progress"
    file.write_text("1 2 3")
    assert small_text(path) == "" and small_text(file) == "1 2 3"
    for make in (
        lambda: path.symlink_to(file),
        lambda: os.mkfifo(path),
        lambda: path.write_text("1" * 1000),
        lambda: path.write_bytes(b"\xff"),
    ):
        make()
        assert small_text(path) == ""
        path.unlink()


@pytest.mark.parametrize("kind", ["pipe", "link", "socket"])
def test_nothing_waits_for_what_is_no_plain_file(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "log"
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "pipe":
            os.mkfifo(log)
        elif kind == "link":
            log.symlink_to("/dev/zero")
        else:
            listener.bind(str(log))
        assert logs.text(log) == ""
        assert last_lines(log, 3) == []


def test_of_a_log_without_end_the_last_lines_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST", 8)
    (tmp_path / "log").write_text("one\n" * 1000 + "two\nend\n")
    assert logs.text(tmp_path / "log") == "two\nend\n"
