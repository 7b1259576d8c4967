"""A folder is checked before the work for it begins."""

import os
from pathlib import Path

import pytest

from commands.folders import writable, writable_file
from experiments.model.errors import ExperimentsError


def test_a_folder_that_can_be_written_is_not_made_yet(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "new" / "deep"):
        assert writable("out", folder) == folder
    assert writable_file("out", tmp_path / "new" / "a.csv") == tmp_path / "new" / "a.csv"
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    assert writable_file("out", file) == file
    for folder, reason in ((file, "File exists"), (file / "below", "Not a directory")):
        with pytest.raises(ExperimentsError, match=rf"{folder} \({reason}\); .* with --figures"):
            writable("figures", folder)
    with pytest.raises(ExperimentsError, match=rf"{tmp_path} is a folder; name a file with --out"):
        writable_file("out", tmp_path)
    assert file.read_text() == "in the way"


def test_a_file_replaces_no_device_and_no_link(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(ExperimentsError, match=f"{pipe} is no ordinary file; name a file with"):
            writable_file("out", path)
    pipe.unlink()
    assert writable_file("out", link) == pipe
    (tmp_path / "circle").symlink_to("circle")
    assert writable_file("out", tmp_path / "circle") == tmp_path / "circle"
