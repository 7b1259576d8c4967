"""A campaign becomes one file, which holds what its folder held and is the same each time."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from experiments.results import archive, unarchive
from experiments.results.store import ResultsError

FILES = ("campaign.json", "environment.json", "launches/0000-host.json", "logs/0000-host.log")
UNDER_WAY = ("incoming/0001-host/result.json", ".campaign.json.17", "driver.lock", "notes.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    campaign = tmp_path / "quick"
    for name in (*FILES, *UNDER_WAY):
        place = campaign / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name)
    (campaign / "logs" / "elsewhere.log").symlink_to("/etc/passwd")
    return campaign


def drawn(stored: Path, figures: Path) -> None:
    assert (stored / "campaign.json").exists()
    (figures / "report.html").write_text("<html>")


@pytest.fixture
def packed(folder: Path, tmp_path: Path) -> tuple[Path, str]:
    """The archive, and its sum."""
    path = tmp_path / "quick.tar.xz"
    return path, archive.archive(folder, drawn, path)


def test_a_campaign_comes_back_with_its_figures(packed: tuple[Path, str], tmp_path: Path) -> None:
    path, first = packed
    with unarchive.opened(path) as unpacked:
        assert archive.archive(unpacked, drawn, tmp_path / "two.tar.xz") == first
        assert unpacked.name == "quick"
        names = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
        assert all((unpacked / name).read_text() == name for name in FILES)
    explained = {name for name in names if name.startswith("format/")}
    assert "format/results-format.md" in explained
    assert names - explained == {*FILES, "figures/report.html", "SHA256SUMS"}


def test_the_same_folder_gives_the_same_bytes_wherever_and_whenever(
    packed: tuple[Path, str], folder: Path, tmp_path: Path
) -> None:
    _, first = packed
    for path in folder.rglob("*.json"):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    again = folder.rename(tmp_path / "elsewhere").rename(tmp_path / "quick")
    assert archive.archive(again, drawn, tmp_path / "two.tar.xz") == first
    assert hashlib.sha256((tmp_path / "two.tar.xz").read_bytes()).hexdigest() == first


def test_tar_and_sha256sum_check_an_archive(packed: tuple[Path, str], tmp_path: Path) -> None:
    place = tmp_path / "by hand"
    place.mkdir()
    subprocess.run(["tar", "xf", packed[0]], cwd=place, check=True)
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    subprocess.run(check, cwd=place / "quick", check=True, capture_output=True)


def test_nothing_is_left_of_an_archive_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (folder / "launches" / "0000-host.json").unlink()
    (folder / "launches" / "0000-host.json").mkdir()  # no file: as good as unreadable, for root too
    (out / "quick.tar.xz").mkdir()
    with pytest.raises(OSError):
        archive.archive(folder, drawn, out / "quick.tar.xz")
    assert list(out.iterdir()) == [out / "quick.tar.xz"]


def test_a_folder_with_a_name_that_no_reader_takes_is_refused(tmp_path: Path) -> None:
    for name in ("results ü", ".hidden", "a~"):
        (tmp_path / name).mkdir()
        with pytest.raises(ResultsError, match="rename it, as to"):
            archive.target(tmp_path / name, None)


def test_a_folder_that_is_not_there_and_another_ending_are_refused(folder: Path) -> None:
    assert archive.target(folder, None) == Path("quick.tar.xz")
    with pytest.raises(ResultsError, match=r"must end in \.tar\.xz"):
        archive.target(folder, Path("quick.zip"))
    with pytest.raises(ResultsError, match="there is no results folder"):
        archive.target(folder / "nowhere", None)


def names_in(path: Path) -> set[str]:
    with unarchive.opened(path) as unpacked:
        names = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*") if file.is_file()}
    return {name for name in names if not name.startswith("format/")}


def test_links_pipes_and_devices_are_left_out_and_named(folder: Path, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "key").write_text("secret")
    (folder / "failed").symlink_to(private)
    (folder / "more.json").symlink_to(private / "key")
    (folder / "launches" / "below").symlink_to(private)
    os.mkfifo(folder / "logs" / "pipe.log")
    lines: list[str] = []
    archive.archive(folder, drawn, tmp_path / "quick.tar.xz", lines.append)
    assert names_in(tmp_path / "quick.tar.xz") == {*FILES, "figures/report.html", "SHA256SUMS"}
    left_out = ("failed", "launches/below", "logs/elsewhere.log", "logs/pipe.log", "more.json")
    assert [line.partition(": ")[2] for line in lines] == [", ".join(map(repr, left_out))]


def test_lists_in_lists_without_end_are_stored_as_they_are(folder: Path, tmp_path: Path) -> None:
    (folder / "launches" / "0000-host.json").write_text("[" * 200_000)
    archive.archive(folder, drawn, tmp_path / "quick.tar.xz")
    assert "launches/0000-host.json" in names_in(tmp_path / "quick.tar.xz")


def test_a_file_that_no_memory_holds_is_named(folder: Path, tmp_path: Path) -> None:
    with (folder / "logs" / "huge.log").open("wb") as file:
        file.truncate(20 * 2**30)  # sparse
    with pytest.raises(ResultsError, match=rf"{folder}/logs/huge\.log has 21474836480 bytes, and"):
        archive.archive(folder, drawn, tmp_path / "quick.tar.xz")
    assert not (tmp_path / "quick.tar.xz").exists()


def test_a_folder_that_becomes_a_link_meanwhile_gives_nothing_away(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    for name in ("0000-host.log", "elsewhere.log"):
        (private / name).write_text("secret")
    stored = archive._stored

    def then_changed(place: Path) -> list[tuple[str, Path]]:
        entries = list(stored(place))
        (folder / "logs").rename(folder / "before")
        (folder / "logs").symlink_to(private)
        return entries

    monkeypatch.setattr(archive, "_stored", then_changed)
    archive.archive(folder, drawn, tmp_path / "quick.tar.xz")
    assert "logs/0000-host.log" not in names_in(tmp_path / "quick.tar.xz")


HERE, REMOVED = "a" * 40, "0" * 40
OUT = "quick.tar.xz"


def in_history(revision: str) -> bool:
    return revision == HERE


def test_only_a_clean_revision_of_the_history_can_be_repeated() -> None:
    assert archive.revision_fault(HERE, in_history) == ""
    assert archive.revision_fault(f"{HERE}-dirty", in_history) == f"changes on top of {HERE}"
    assert archive.revision_fault(REMOVED, in_history).startswith(f"{REMOVED}, which is not in")
    for odd in ("unknown", "--all"):
        assert archive.revision_fault(odd, in_history) == f"the revision '{odd}'"


def test_a_campaign_that_nobody_can_repeat_is_refused_for_the_pages(tmp_path: Path) -> None:
    folder, lines = tmp_path / "quick", list[str]()
    folder.mkdir()
    (folder / "campaign.json").write_text(json.dumps({"git": f"{REMOVED}-dirty"}))
    with pytest.raises(ResultsError, match=r"changes on top of 0{40}, .* measure again"):
        archive.refuse_unrepeatable(
            folder, archive.PUBLISHED / "quick.tar.xz", in_history, lines.append
        )
    archive.refuse_unrepeatable(folder, tmp_path / "quick.tar.xz", in_history, lines.append)
    assert len(lines) == 1
    assert "changes on top of" in lines[0]
