"""From a results folder to files: the same bytes each time, whole or not at all."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plots.draw import FORMATS, PlotsError, draw, write
from plots.figures.systems import OTHERS
from plots.layout.labels import EMULATED

DRAW = """
import pathlib, sys
from plots.draw import draw
for results, out, *formats in map(str.split, sys.argv[1:]):
    draw(pathlib.Path(results), pathlib.Path(out), formats)
"""


@pytest.fixture(scope="module")
def emulated_drawn(emulated_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What an emulated machine's campaign is drawn as, its map among it."""
    return draw(emulated_folder, tmp_path_factory.mktemp("emulated"), ("svg",))


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def words(svg: str) -> str:
    """The words of a figure: matplotlib draws outlines and leaves each text as a comment."""
    return " ".join(re.findall(r"<!-- (.*?) -->", svg))


def test_every_figure_in_every_format_and_every_table_twice(
    drawn: list[Path], quick_page: Path
) -> None:
    page = quick_page.read_text(encoding="utf-8")
    figures = set(re.findall(r'<figure id="([^"]+)">', page))
    assert figures == {"others-2-ranks", "times-2-ranks", "speedup-2-ranks", "container-2-ranks"}
    tables = set(re.findall(r'id="table-([^"]+)"', page))
    assert tables == {"paper", "times", "transport", "speedup", "container", "groups", "twins"}
    assert {path.name for path in drawn} == {
        *(f"{stem}.{form}" for stem in figures for form in (*FORMATS, "caption.txt")),
        *(f"{stem}.{form}" for stem in tables for form in ("csv", "tex")),
    }
    assert set(drawn[0].parent.iterdir()) == set(drawn)


@pytest.mark.rare
def test_the_same_bytes_in_other_processes_folders_hours_and_locales(
    campaign_folder: Path,
    drawn: list[Path],
    emulated_folder: Path,
    emulated_drawn: list[Path],
    bench_folder: Path,
    tmp_path: Path,
) -> None:
    bench_drawn = draw(bench_folder, tmp_path / "bench")
    assert len(bench_drawn) == 2 * (len(FORMATS) + 1)  # a caption beside each figure
    every = " ".join(FORMATS)
    again = {
        f"{campaign_folder} {tmp_path}/0 {every}": drawn,
        f"{emulated_folder} {tmp_path}/1 svg": emulated_drawn,
        f"{bench_folder} {tmp_path}/2 {every}": bench_drawn,
    }
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "matplotlibrc").write_text("font.size: 23\naxes.facecolor: red\n")
    zone, locale = "Asia/Tokyo", "C" if os.environ.get("LC_ALL") == "C.UTF-8" else "C.UTF-8"
    subprocess.run(
        [sys.executable, "-c", DRAW, *again],
        cwd=elsewhere,
        env=os.environ | {"PYTHONHASHSEED": "2", "TZ": zone, "LC_ALL": locale},
        check=True,
    )
    for number, files in enumerate(again.values()):
        assert digests(tmp_path / str(number)) == digests(files[0].parent)


def test_emulated_memory_is_labelled_in_every_figure_that_shows_it(drawn: list[Path]) -> None:
    for path in drawn:
        if path.suffix == ".svg" and not path.name.startswith(OTHERS):  # in ordinary memory alone
            assert EMULATED in words(path.read_text()), path.name


def test_an_emulated_machine_is_labelled_in_every_figure_and_its_map_comes_first(
    emulated_drawn: list[Path],
) -> None:
    assert emulated_drawn[0].name == "placement-map-2-ranks-packed.svg"
    assert {path.suffix for path in emulated_drawn} == {".svg", ".csv", ".tex", ".txt"}
    for path in emulated_drawn:
        reported = path.read_text()
        if path.suffix == ".svg":
            assert "pages are is real, times mean nothing." in words(reported), path.name
        elif path.suffix == ".csv":
            head, *rows = reported.splitlines()
            assert head.endswith(",emulated_machine"), path.name
            assert {row.rsplit(",", 1)[1] for row in rows} == {"knl-snc4-flat (tcg)"}, path.name
        else:
            assert "times mean nothing" in reported, path.name


def test_title_and_notes_stand_in_a_file_beside_the_figure(drawn: list[Path]) -> None:
    (caption,) = (path for path in drawn if path.name == "times-2-ranks.caption.txt")
    text = caption.read_text()
    assert text.startswith("Time against message size, 2 ranks. Open MPI, ranks packed, ")
    assert "Lines connect sizes only." in text
    assert "Hollow mark: too few launches for a 95 % interval." in text
    shown = words(caption.with_name("times-2-ranks.svg").read_text())
    assert "Bcast" in shown and EMULATED in shown
    for left_out in ("Time per operation", "Hollow mark", "ranks packed"):
        assert left_out not in shown


def test_a_paper_finds_a_font_of_papers_embedded(drawn: list[Path]) -> None:
    for path in drawn:
        if path.suffix == ".pdf":
            content = path.read_bytes()
            assert b"STIXGeneral" in content and b"/FontFile2" in content, path.name
            assert b"DejaVu" not in content, path.name


def test_no_file_holds_a_date(drawn: list[Path]) -> None:
    for path in drawn:
        content = path.read_bytes()
        assert b"CreationDate" not in content and b"dc:date" not in content, path.name


def test_a_missing_arm_is_reported_in_every_figure_of_arms(
    dockerless_folder: Path, tmp_path: Path
) -> None:
    for path in draw(dockerless_folder, tmp_path, ("svg",)):
        if path.suffix == ".svg" and not path.name.startswith(OTHERS):  # of the host alone
            assert "Not measured. docker:" in words(path.read_text()), path.name


def test_an_unknown_format_is_named(campaign_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PlotsError, match="unknown format 'jpeg'; name one of pdf, svg, png"):
        draw(campaign_folder, tmp_path, ("jpeg",))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PlotsError, match=r"cannot be written .*another --out"):
        write(tmp_path / "file" / "a.svg", b"")
    (tmp_path / "taken.svg").mkdir()
    with pytest.raises(PlotsError, match="cannot be written"):
        write(tmp_path / "taken.svg", b"x")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "taken.svg"}
