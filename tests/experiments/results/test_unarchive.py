"""An archive is opened as what it holds, or refused by its name; nothing is written elsewhere."""

import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from experiments.results import unarchive
from experiments.results.unarchive import ArchiveRefused, opened

FILES = {"campaign.json": b"{}", "launches/0000-host.json": b"{}"}


def entry(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def sums(files: dict[str, bytes]) -> bytes:
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    return "".join(lines).encode()


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


def refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said; the folder of the archive holds it alone, and nothing temporary is left."""
    temporary = path.parent / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with pytest.raises(ArchiveRefused) as error, opened(path):
        pytest.fail("it was opened")
    assert str(path) in str(error.value)
    assert sorted(path.parent.rglob("*")) == [path, temporary]
    return str(error.value)


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert "which no campaign's file is called" in refused(
        packed(tmp_path, entry(name, b"x")), monkeypatch
    )


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"V"]
)
def test_what_is_no_plain_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: bytes
) -> None:
    other = entry("quick/launches/link", type=kind, linkname="/etc/passwd")
    assert "is no plain file" in refused(packed(tmp_path, other), monkeypatch)


def test_a_file_through_a_folder_that_is_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = entry("quick/campaign.json/x", b"x")
    assert "twice" in refused(packed(tmp_path, other), monkeypatch)


@pytest.mark.parametrize(
    ("files", "listed", "text"),
    [
        ({"campaign.json": b"{1}"}, {"campaign.json": b"{}"}, "campaign.json is not what"),
        ({}, {"campaign.json": b"{}"}, "lacks quick/campaign.json, which"),
        (FILES, {}, "campaign.json, which its SHA256SUMS does not list"),
    ],
)
def test_a_changed_archive_names_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, bytes],
    listed: dict[str, bytes],
    text: str,
) -> None:
    assert text in refused(packed(tmp_path, files=files, listed=listed), monkeypatch)


def test_a_name_that_is_there_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = entry("quick/campaign.json", b"{1}")
    assert "holds quick/campaign.json twice" in refused(packed(tmp_path, again), monkeypatch)


def test_two_campaigns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = entry("other/campaign.json", b"{}")
    assert "2 folders" in refused(packed(tmp_path, other), monkeypatch)


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = packed(tmp_path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with pytest.raises(ArchiveRefused), opened(path):
            pytest.fail(f"byte {place} may be anything")


@pytest.mark.parametrize("change", [lambda each: each[:-9], lambda each: each + b"more"])
def test_an_archive_that_is_cut_short_or_goes_on_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: object
) -> None:
    assert callable(change)
    path = packed(tmp_path)
    path.write_bytes(change(path.read_bytes()))
    assert "is damaged or no archive of a campaign" in refused(path, monkeypatch)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("<html>")
    assert "name a results folder" in refused(path, monkeypatch)


def test_a_bomb_is_refused_before_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unarchive, "LARGEST", 2**20)
    bomb = packed(tmp_path, entry("quick/logs/bomb", bytes(2**23)))
    assert bomb.stat().st_size < 2**13
    assert "unpacks to far more" in refused(bomb, monkeypatch)


def test_a_sparse_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**50), "GNU.sparse.major": "0"}
    bomb = entry("quick/logs/bomb", b"x", pax_headers=headers)
    assert "is no plain file" in refused(packed(tmp_path, bomb), monkeypatch)


def test_more_files_than_any_campaign_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unarchive, "MOST_FILES", 2)
    assert "more than 2 files" in refused(packed(tmp_path), monkeypatch)


def test_an_archive_that_would_take_all_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unarchive, "MEMORY", 2**20)  # what this one wants is 9 times as much
    assert "Memory usage limit" in refused(packed(tmp_path), monkeypatch)


def test_samples_that_are_packed_once_more_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = io.BytesIO()
    np.savez_compressed(memory, c00000=np.zeros(2**20))
    files = {"launches/0000-host.npz": memory.getvalue()}
    text = refused(packed(tmp_path, files=files, listed=files), monkeypatch)
    assert "0000-host.npz is packed" in text
    memory = io.BytesIO()
    np.savez(memory, c00000=np.zeros(2**10))
    files = {"launches/0000-host.npz": memory.getvalue()}
    with opened(packed(tmp_path, files=files, listed=files)) as folder:
        assert np.load(folder / "launches/0000-host.npz")["c00000"].size == 2**10


def test_a_list_of_sums_that_is_no_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "quick.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for name, content in (("campaign.json", b"{}"), ("SHA256SUMS", b"\xff\xfe\n")):
            info, held = entry(f"quick/{name}", content)
            tar.addfile(info, io.BytesIO(held))
    assert "which its SHA256SUMS lists" in refused(path, monkeypatch)


@pytest.mark.parametrize(
    "headers",
    [
        {"GNU.sparse.map": "x,y"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "x"},
    ],
)
def test_headers_that_tar_cannot_read_are_refused(
    headers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = entry("quick/odd", pax_headers=headers)
    assert "quick.tar.xz" in refused(packed(tmp_path, odd), monkeypatch)
