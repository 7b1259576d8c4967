"""docs/reproduce.md knows every measurement of every page, and pages mark what has no archive."""

import hashlib
import re
from pathlib import Path

import pytest

from plots import documentation, reproduce

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / reproduce.PAGE).read_text(encoding="utf-8")
MARK = "*No archive:*"
MADE = re.compile(r"<!-- measured: .*?<!-- end -->", re.DOTALL)
VALUE = re.compile(r"\| [\d.,]+(?: (?:ns|µs|ms|s|\([\d.]+ to [\d.]+\)))? (?=\|)")


@pytest.mark.parametrize("part", documentation.OF_REPRODUCING)
def test_the_page_is_what_invoke_docs_would_write(part: str) -> None:
    text = documentation.OF_REPRODUCING[part](ROOT)
    assert f"<!-- reproduce: {part} -->\n{text}<!-- end -->" in PAGE, "out of date: ./inv docs"


def test_every_archive_has_a_place_a_command_and_a_checksum() -> None:
    archives = list((ROOT / reproduce.DATA).glob("*.xz"))
    assert {place.archive for place in reproduce.shown(ROOT)} == {
        path.name.partition(".")[0] for path in archives
    }
    for path in archives:
        assert hashlib.sha256(path.read_bytes()).hexdigest() in PAGE
    assert PAGE.count("\n```\n./inv ") == len(archives) + 1


@pytest.mark.parametrize("page", ["torch.md", "systems.md", "systems/daso.md"])
def test_a_table_of_measured_values_without_an_archive_says_so(page: str) -> None:
    text = MADE.sub("", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    blocks = text.split("\n\n")
    for number, block in enumerate(blocks):
        if len(VALUE.findall(block)) > 1:
            assert blocks[number + 1].startswith(MARK), block
    assert MARK in text


def test_what_a_page_marks_is_on_the_list(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# One\n\n*No archive:* a rate\nof copies.\n\nMore.\n")
    (tmp_path / "docs" / "two.md").write_text("*No archive:* a time.\n")
    assert reproduce.unstored(tmp_path).splitlines()[2:] == [
        "| [README](../README.md) | a rate of copies |",
        "| [two](two.md) | a time |",
    ]
