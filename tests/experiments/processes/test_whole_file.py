"""A file is replaced by a whole one, or stays as it was; no other file is written."""

import os
from pathlib import Path

import pytest

from experiments.processes.whole_file import whole_file
from tests.second_user import SecondUser


def test_a_file_is_replaced_at_the_end_of_the_block(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_block_leaves_the_file_and_no_neighbour(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="full"), whole_file(path) as file:
        file.write(b"half")
        raise OSError("full")
    assert path.read_text() == "old"
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


def test_even_a_name_that_is_known_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    monkeypatch.setattr(os, "urandom", bytes)
    (tmp_path / f".a.txt.{'00' * 8}").symlink_to(precious)
    with pytest.raises(FileExistsError), whole_file(tmp_path / "a.txt"):
        pass
    assert precious.read_text() == "as it was"


PLANT = 'for number in $(seq $(($3 - 50)) $(($3 + 50))); do ln -s "$2" "$1/.a.txt.$number"; done'
SWAP = 'cd "$1" && for each in .b.txt.*; do ln -sfn "$2" "$each"; done'
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
