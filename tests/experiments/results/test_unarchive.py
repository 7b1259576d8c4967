"""An archive is opened as what it holds; test_wrong_archives.py has archives that are refused."""

import io
import tarfile
from pathlib import Path

import pytest

from experiments.results import unarchive
from experiments.results.store import ResultsError
from experiments.results.unarchive import opened
from tests.experiments.results.wrong_archives import entry, listed

FILES = {"campaign.json": b"{}", "launches/0000-host.json": b"{}"}


def packed(place: Path, **more: bytes) -> Path:
    """An archive of these files, as small as tar makes it."""
    path = place / "quick.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for name, content in listed(FILES | more).items():
            tar.addfile(entry(f"quick/{name}", content)[0], io.BytesIO(content))
    return path


def test_a_folder_is_itself_and_an_archive_a_folder_for_a_while(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        assert folder == tmp_path
    with opened(packed(tmp_path)) as folder:
        assert folder.name == "quick"
        assert (folder / "launches/0000-host.json").read_bytes() == b"{}"
    assert not folder.parent.exists()


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = packed(tmp_path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with pytest.raises(ResultsError), opened(path):
            pytest.fail(f"byte {place} may be anything")


def test_an_archive_beyond_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb, temporary = packed(tmp_path, bomb=bytes(2**23)), tmp_path / "temporary"
    assert bomb.stat().st_size < 2**13
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for limit, value, text in (
        ("LARGEST", 2**20, "unpacks to far more"),
        ("MOST_FILES", 2, "more than 2 files"),
        ("MEMORY", 2**20, "Memory usage limit"),  # what this one wants is 9 times as much
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(unarchive, limit, value)
            with pytest.raises(ResultsError, match=rf"{bomb}.*{text}"), opened(bomb):
                pytest.fail("it was opened")
        assert sorted(tmp_path.rglob("*")) == [bomb, temporary]
