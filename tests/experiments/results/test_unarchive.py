"""An archive is opened as what it holds, or refused by its name; nothing is written elsewhere."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.results import unarchive
from experiments.results.store import ResultsError
from experiments.results.unarchive import opened
from tests.experiments.results.wrong_archives import entry, sums

Refused = Callable[[Path], str]
FILES = {"campaign.json": b"{}", "launches/0000-host.json": b"{}"}


def packed(
    place: Path,
    *more: tuple[tarfile.TarInfo, bytes],
    files: dict[str, bytes] = FILES,
    listed: dict[str, bytes] = FILES,
) -> Path:
    """An archive of these files, and after them whatever else."""
    path = place / "quick.tar.xz"
    stored = [entry(f"quick/{name}", content) for name, content in files.items()]
    with tarfile.open(path, "w:xz") as tar:
        for info, content in [*stored, entry("quick/SHA256SUMS", sums(listed)), *more]:
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refused:
    """The error of an archive; its folder holds it alone, and nothing temporary is left."""

    def opening(path: Path) -> str:
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        with pytest.raises(ResultsError) as error, opened(path):
            pytest.fail("it was opened")
        assert str(path) in str(error.value)
        assert sorted(tmp_path.rglob("*")) == [path, temporary]
        return str(error.value)

    return opening


def test_a_folder_is_itself_and_an_archive_a_folder_for_a_while(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        assert folder == tmp_path
    with opened(packed(tmp_path)) as folder:
        assert folder.name == "quick"
        assert (folder / "launches/0000-host.json").read_bytes() == b"{}"
    assert not folder.parent.exists()


@pytest.mark.parametrize(
    "name",
    [
        *("../out", "/tmp/out", "quick/../../out", "quick/./x", "quick//x", "out", "quick/.hidden"),
        *("quick/a\nb", "quick/a\\b", "quick/" + "d/" * 9 + "x", "quick/" + "x" * 300, "quick/ü"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(
    tmp_path: Path, refused: Refused, name: str
) -> None:
    error = refused(packed(tmp_path, entry(name, b"x")))
    assert "which no campaign's file is called" in error


SPARSE = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**50), "GNU.sparse.major": "0"}
UNREADABLE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "x"}


@pytest.mark.parametrize(
    ("other", "text"),
    [
        *(
            (entry("quick/launches/link", type=kind, linkname="/etc/passwd"), "is no plain file")
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"V")
        ),
        (entry("quick/logs/bomb", b"x", pax_headers=SPARSE), "is no plain file"),
        (entry("quick/odd", pax_headers=UNREADABLE), "quick.tar.xz"),
        (entry("quick/odd", pax_headers={"GNU.sparse.map": "x,y"}), "quick.tar.xz"),
        (entry("quick/campaign.json/x", b"x"), "twice"),  # through a folder that is a file
        (entry("quick/campaign.json", b"{1}"), "holds quick/campaign.json twice"),
        (entry("other/campaign.json", b"{}"), "2 folders"),
    ],
)
def test_an_entry_that_no_campaign_has_is_refused(
    tmp_path: Path, refused: Refused, other: tuple[tarfile.TarInfo, bytes], text: str
) -> None:
    assert text in refused(packed(tmp_path, other))


@pytest.mark.parametrize(
    ("files", "listed", "text"),
    [
        ({"campaign.json": b"{1}"}, {"campaign.json": b"{}"}, "campaign.json is not what"),
        ({}, {"campaign.json": b"{}"}, "lacks quick/campaign.json, which"),
        (FILES, {}, "campaign.json, which its SHA256SUMS does not list"),
    ],
)
def test_a_changed_archive_names_the_file(
    tmp_path: Path, refused: Refused, files: dict[str, bytes], listed: dict[str, bytes], text: str
) -> None:
    assert text in refused(packed(tmp_path, files=files, listed=listed))


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = packed(tmp_path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with pytest.raises(ResultsError), opened(path):
            pytest.fail(f"byte {place} may be anything")


@pytest.mark.parametrize("change", [lambda data: data[:-9], lambda data: data + b"more"])
def test_an_archive_that_is_cut_short_or_goes_on_is_refused(
    tmp_path: Path, refused: Refused, change: Callable[[bytes], bytes]
) -> None:
    path = packed(tmp_path)
    path.write_bytes(change(path.read_bytes()))
    assert "is damaged or no archive of a campaign" in refused(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "page.html"
    path.write_text("<html>")
    assert "name a results folder" in refused(path)


@pytest.mark.parametrize(
    ("limit", "value", "text"),
    [
        ("LARGEST", 2**20, "unpacks to far more"),
        ("MOST_FILES", 2, "more than 2 files"),
        ("MEMORY", 2**20, "Memory usage limit"),  # what this one wants is 9 times as much
    ],
)
def test_an_archive_beyond_a_limit_is_refused(
    tmp_path: Path,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    text: str,
) -> None:
    monkeypatch.setattr(unarchive, limit, value)
    bomb = packed(tmp_path, entry("quick/logs/bomb", bytes(2**23)))
    assert bomb.stat().st_size < 2**13
    assert text in refused(bomb)


def test_samples_that_are_packed_once_more_are_refused(tmp_path: Path, refused: Refused) -> None:
    memory = io.BytesIO()
    np.savez_compressed(memory, c00000=np.zeros(2**20))
    files = {"launches/0000-host.npz": memory.getvalue()}
    assert "0000-host.npz is packed" in refused(packed(tmp_path, files=files, listed=files))
    memory = io.BytesIO()
    np.savez(memory, c00000=np.zeros(2**10))
    files = {"launches/0000-host.npz": memory.getvalue()}
    with opened(packed(tmp_path, files=files, listed=files)) as folder:
        assert np.load(folder / "launches/0000-host.npz")["c00000"].size == 2**10


def test_a_list_of_sums_that_is_no_text_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "quick.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for name, content in (("campaign.json", b"{}"), ("SHA256SUMS", b"\xff\xfe\n")):
            info, held = entry(f"quick/{name}", content)
            tar.addfile(info, io.BytesIO(held))
    assert "which lists no campaign's file" in refused(path)
