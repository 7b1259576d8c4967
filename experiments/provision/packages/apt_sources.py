"""The mirrors that apt is configured with: one-line sources and deb822 files, read at run time.

Knows the two formats of sources.list(5); fetches nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path

ETC_APT = Path("/etc/apt")
FETCHABLE = ("http://", "https://", "file:/")  # what mmdebstrap can fetch from


@dataclass(frozen=True)
class Source:
    """One archive of binary packages that apt reads."""

    uri: str
    suite: str
    components: tuple[str, ...]


def sources(etc: Path = ETC_APT) -> tuple[Source, ...]:
    """Every enabled source, in the order in which apt reads the files."""
    folder = etc / "sources.list.d"
    files = [etc / "sources.list", *sorted(folder.glob("*"))]
    return tuple(source for path in files for source in _read(path))


def mirror(suite: str, etc: Path = ETC_APT) -> str | None:
    """Where apt fetches the component main of a suite from, or None."""
    for source in sources(etc):
        if (
            source.suite == suite
            and "main" in source.components
            and source.uri.startswith(FETCHABLE)
        ):
            return source.uri
    return None


def _read(path: Path) -> Iterator[Source]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    if path.suffix == ".list":
        yield from _one_line(text)
    elif path.suffix == ".sources":
        yield from _deb822(text)


def _one_line(text: str) -> Iterator[Source]:
    """deb [options] URI SUITE COMPONENT..."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s*)?(\S+)\s+(\S+)([^#]*)", line)
        if match:
            yield Source(match[1].rstrip("/"), match[2], tuple(match[3].split()))


def _deb822(text: str) -> Iterator[Source]:
    """Paragraphs of `Field: values`, as the header of a mail has them."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)):
        header = message_from_string(paragraph.lstrip())
        fields = {key.lower(): value.split() for key, value in header.items()}
        enabled = " ".join(fields.get("enabled", [])).lower()
        if "deb" not in fields.get("types", []) or enabled in ("no", "false", "0"):
            continue
        for uri in fields.get("uris", []):
            for suite in fields.get("suites", []):
                yield Source(uri.rstrip("/"), suite, tuple(fields.get("components", [])))
