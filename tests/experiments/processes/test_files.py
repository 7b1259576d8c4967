"""A hash changes with names, contents and words."""

import os
import socket
from pathlib import Path

import pytest

from experiments.processes import files
from experiments.processes.files import digest, last_lines, of_python, small_text, whole_file
from tests.second_user import SecondUser


def test_names_contents_and_words_all_count(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("some")
    (tmp_path / "b").write_text("other")
    every = [
        digest(b"", []),
        digest(b"words", []),
        digest(b"words", [("a", tmp_path / "a")]),
        digest(b"words", [("b", tmp_path / "a")]),
        digest(b"words", [("a", tmp_path / "b")]),
    ]
    assert len(set(every)) == len(every)
    assert every[2] == digest(b"words\0a\0some", [])


def test_code_of_another_text_or_another_name_has_another_hash(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    before = of_python(tmp_path)
    (tmp_path / "a.pyc").write_text("no source")
    assert before == of_python(tmp_path)
    source.write_text("x = 2\n")
    edited = of_python(tmp_path)
    source.rename(tmp_path / "b.py")
    assert len({before, edited, of_python(tmp_path)}) == 3


def test_blank_lines_at_the_end_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n\nthree\n\n")
    assert last_lines(log, 1) == ["three"]
    assert last_lines(log, 3) == ["two", "", "three"]
    assert last_lines(log, 9) == ["one", "two", "", "three"]
    log.write_text("\n")
    assert last_lines(log, 3) == last_lines(tmp_path / "none", 3) == []


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


def test_nothing_waits_for_what_is_no_plain_file(tmp_path: Path) -> None:
    pipe, link, bound = (tmp_path / name for name in ("pipe", "link", "socket"))
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(bound))
        for log in (pipe, link, bound):
            assert files.text(log) == "", log
            assert last_lines(log, 3) == []


def test_of_a_long_log_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST", 8)
    (tmp_path / "log").write_text("one\n" * 1000 + "two\nend\n")
    assert files.text(tmp_path / "log") == "two\nend\n"


def test_a_file_is_replaced_at_the_end_of_a_block_that_does_not_fail(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    with pytest.raises(OSError, match="full"), whole_file(path) as file:
        file.write(b"half")
        raise OSError("full")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_the_umask_decides_who_reads_it(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with whole_file(tmp_path / "a.txt") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_link_at_the_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    (tmp_path / "a.txt").symlink_to(precious)
    with whole_file(tmp_path / "a.txt") as file:
        file.write(b"new")
    assert precious.read_text() == "as it was"
    assert (tmp_path / "a.txt").read_text() == "new"


def test_a_known_name_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    monkeypatch.setattr(os, "urandom", bytes)
    (tmp_path / f".a.txt.{'00' * 8}").symlink_to(precious)
    with pytest.raises(FileExistsError), whole_file(tmp_path / "a.txt"):
        pass
    assert precious.read_text() == "as it was"


PLANT = 'for number in $(seq $(($3 - 50)) $(($3 + 50))); do ln -s "$2" "$1/.a.txt.$number"; done'
SWAP = 'cd "$1" && for file in .b.txt.*; do ln -sfn "$2" "$file"; done'
"""Lines of a shell: a folder, the target of links, a PID."""


def test_the_owner_of_the_folder_leads_a_writer_to_no_other_file(
    second_user: SecondUser, shared_by_users: Path
) -> None:
    """Links are planted before, and put in the place of the temporary file meanwhile."""
    folder, precious = shared_by_users / "folder", shared_by_users / "precious"
    folder.mkdir()
    os.chown(folder, second_user.uid, second_user.gid)
    precious.write_text("as it was")
    places = (str(folder), str(precious), str(os.getpid()))
    planted = second_user.run(["sh", "-c", PLANT, "sh", *places])
    assert planted.returncode == 0, planted.stderr
    with whole_file(folder / "a.txt") as file:
        file.write(b"new")
    assert (folder / "a.txt").read_text() == "new"
    with whole_file(folder / "b.txt") as file:
        swapped = second_user.run(["sh", "-c", SWAP, "sh", *places])
        assert swapped.returncode == 0, swapped.stderr
        file.write(b"new")
    assert precious.read_text() == "as it was"
