"""A drawing in a page: named, self-contained, without a colour of its own."""

import re
import xml.etree.ElementTree as ET

import pytest

from plots.draw import drawings
from plots.html.svg_embed import inline
from plots.layout.figure_layout import Drawing
from tests.campaigns import find


@pytest.fixture(scope="module")
def pieces() -> list[str]:
    """Every figure of the quick campaign, inlined."""
    return [inline(figure) for figure in drawings(find()) if isinstance(figure, Drawing)]


def test_each_has_a_role_a_label_and_a_description(pieces: list[str]) -> None:
    for piece in pieces:
        root = ET.fromstring(piece)
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-label"]
        title, description = list(root)[:2]
        assert title.tag.endswith("title") and title.text == root.attrib["aria-label"]
        assert description.tag.endswith("desc") and description.text
        assert root.attrib["aria-describedby"] == description.attrib["id"]


def test_every_reference_meets_its_identifier(pieces: list[str]) -> None:
    for piece in pieces:
        known = set(re.findall(r'\bid="([^"]+)"', piece))
        asked = set(re.findall(r'href="#([^"]+)"', piece)) | set(
            re.findall(r"url\(#([^)]+)\)", piece)
        )
        assert asked <= known
        assert asked


def test_every_colour_can_be_set_by_the_page(pieces: list[str]) -> None:
    for piece in pieces:
        assert re.findall(r"(?<!&)#[0-9a-fA-F]{6}\b", piece) == []
        assert "var(--c-" in piece


def test_nothing_reaches_into_the_page_or_out_of_it(pieces: list[str]) -> None:
    for piece in pieces:
        assert "<style" not in piece and "<script" not in piece and "<metadata" not in piece
        assert set(re.findall(r'https?://[^"\s]+', piece)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }


def test_the_place_decides_the_size(pieces: list[str]) -> None:
    for piece in pieces:
        head = piece.split(">", 1)[0]
        assert "viewBox" in head and "width=" not in head and "height=" not in head


def test_a_mark_says_what_it_shows_and_names_its_cell() -> None:
    (drawing,) = (
        figure
        for figure in drawings(find(kinds=("regular",)))
        if isinstance(figure, Drawing) and figure.marks
    )
    root = ET.fromstring(inline(drawing))
    marks = [element for element in root.iter() if "data-cell" in element.attrib]
    assert {mark.attrib["data-cell"] for mark in marks} == set(drawing.marks)
    for mark in marks:
        assert mark[0].tag.endswith("title")
        assert mark[0].text == drawing.marks[mark.attrib["data-cell"]]


def test_places_are_as_fine_as_the_eye_can_see_and_no_finer(pieces: list[str]) -> None:
    for piece in pieces:
        for element in ET.fromstring(piece).iter():
            for key in ("d", "x", "y"):
                assert not re.search(r"\.\d{3}", element.attrib.get(key, ""))
