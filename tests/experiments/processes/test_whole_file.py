"""A file is replaced by a whole one, or stays as it was."""

from pathlib import Path

import pytest

from experiments.processes.whole_file import whole_file


def test_a_file_is_replaced_at_the_end_of_the_block(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_block_leaves_the_file_and_no_neighbour(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="full"), whole_file(path) as temporary:
        temporary.write_text("half")
        raise OSError("full")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
