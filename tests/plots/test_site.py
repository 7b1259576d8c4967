"""The site: built in strict mode, whole by itself, with every public name of the library."""

import re
import shutil
import zlib
from pathlib import Path

import pytest

import hbmcomm
from plots import site
from plots.draw import PlotsError
from plots.layout.labels import glossary

ROOT = Path(__file__).parents[2]


def copied(folder: Path) -> Path:
    """The sources of all pages in a folder of their own; campaigns stay where they are."""
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("data"))
    for name in site.FROM_ROOT:
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    return site.build(copied(tmp_path_factory.mktemp("site"))).parent


def test_every_page_is_built_without_a_dead_link(built: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").rglob("*.md")}
    pages |= {"index", "contributing", "security"}
    assert {path.stem for path in built.rglob("*.html")} >= pages


def test_pages_load_nothing_from_the_network(built: Path) -> None:
    for page in built.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]*)\"", text)
        loaded += re.findall(r"<link\b[^>]*\bhref=\"([^\"]*)\"", text)
        assert [url for url in loaded if "//" in url] == [], page.name
    for sheet in built.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//", text), sheet.name


def test_every_public_name_is_documented(built: Path) -> None:
    # objects.inv: four lines of text, then compressed lines "name domain:role priority uri title"
    head, _, packed = (built / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert head
    listed = {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}
    assert {f"hbmcomm.{name}" for name in hbmcomm.__all__} - listed == set()


def test_links_between_files_become_links_between_pages() -> None:
    places = {"README.md": "index.md", "docs/a.md": "a.md", "docs/b/c.svg": "b/c.svg"}
    shown = "[a](docs/a.md#x) ![c](docs/b/c.svg) [else](tasks.py) [here](#top)"
    assert site.relinked(shown, "README.md", places) == (
        "[a](a.md#x) ![c](b/c.svg) [else](tasks.py) [here](#top)"
    )
    assert site.relinked("[start](../README.md)", "docs/a.md", places) == "[start](index.md)"


def test_dead_links_are_refused_by_their_page(tmp_path: Path) -> None:
    root = copied(tmp_path)
    for page in root.rglob("*.md"):
        if page.name != "method.md":
            page.write_text("# Empty\n", encoding="utf-8")
    dead = "# Words\n\n[page](nowhere.md) [part](method.md#no-such-part)\n"
    (root / "docs" / "glossary.md").write_text(dead, encoding="utf-8")
    with pytest.raises(PlotsError) as refused:
        site.build(root)
    lines = [line for line in str(refused.value).splitlines() if "glossary.md" in line]
    for link in ("nowhere.md", "no-such-part"):
        assert any(link in line for line in lines), refused.value


def test_the_glossary_has_the_words_of_a_campaign() -> None:
    words = glossary()
    assert {"campaign", "block", "arm", "cell", "cadence", "bound", "arena", "A/A"} <= words.keys()
    assert all(meaning.endswith(".") and "|" not in meaning for meaning in words.values())
