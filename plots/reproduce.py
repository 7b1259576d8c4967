"""What docs/reproduce.md says: where measured figures and tables come from, and how to repeat them.

Reads the pages and the archives of docs/data; draws nothing.
"""

import hashlib
import json
import re
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from experiments.model.contender_names import NO_MPI
from experiments.model.launch import NUMPY
from experiments.model.quantities import NOTHING
from experiments.results.local_names import Replacing
from experiments.results.store import PROGRAM
from plots.html.report import command
from plots.tables import stored_bench
from plots.tables.table import markdown

DATA = Path("docs/data")
PAGE = Path("docs/reproduce.md")
UNREPEATABLE = "unrepeatable.toml"
_HEADING = re.compile(r"^#+ (.+)$")
_SHOWN = re.compile(
    r"^(?:!\[[^]]*\]\((?:docs/)?(?P<figure>[a-z_]+)-(?P<name>[\w-]+)\.svg\)"
    r"|<!-- measured: (?P<table>\w+), (?P<part>[\w -]+) -->)"
)
_UNSTORED = re.compile(r"^\*No archive:\* (.+?)\n(?:\n|\Z)", re.MULTILINE | re.DOTALL)


class Shown(NamedTuple):
    """A place of a page that shows a measurement.

    Attributes:
        page: in the checkout.
        heading: the nearest one above it.
        what: "figure `NAME`", or "part `NAME`" for a table or a sentence.
    """

    archive: str
    page: Path
    heading: str
    what: str


def pages(root: Path) -> list[Path]:
    """The pages of a checkout that may show measurements, README.md first."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def shown(root: Path) -> Iterator[Shown]:
    """Every place of every page that shows a measurement."""
    for page in pages(root):
        heading = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if title := _HEADING.match(line):
                heading = title[1]
            if match := _SHOWN.match(line):
                what = f"figure `{match['name']}`" if match["figure"] else f"part `{match['part']}`"
                archive = match["figure"] or match["table"]
                yield Shown(archive, page.relative_to(root), heading, what)


def places(root: Path) -> str:
    """A Markdown table: where a page shows what, and of which archive."""
    return markdown(
        ["page", "section", "shows", "archive"],
        (
            [_link(place.page), place.heading, place.what, f"[{place.archive}](#{place.archive})"]
            for place in shown(root)
        ),
    )


def archives(root: Path) -> str:
    """A section for each archive: how to measure it again, and how to see that a copy is whole."""
    listed = tomllib.loads((root / DATA / UNREPEATABLE).read_text(encoding="utf-8"))
    files = sorted((root / DATA).glob("*.xz"))
    return "\n".join(_section(path, listed["revision"]) for path in files)


def _section(path: Path, unrepeatable: Mapping[str, str]) -> str:
    name = path.name.partition(".")[0]
    header = _header(path)
    revision = f"`{header['git']}`" if "git" in header else NOTHING
    fault = f"; cannot be checked out: {why}" if (why := unrepeatable.get(name)) else ""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return (
        f"### {name}\n\n```\n{_command(header)}\n```\n\n"
        f"- revision: {revision}{fault}\n"
        f"- machine: {_machine(header.get('machine', {}))}\n"
        f"- `sha256sum docs/data/{path.name}`: `{digest}`\n"
    )


def _header(path: Path) -> dict[str, Any]:
    """campaign.json of an archive, which comes first in it; the whole JSON of a bench."""
    if path.name.endswith(".json.xz"):
        return stored_bench.load(path)
    with tarfile.open(path, "r|xz") as tar:
        for member in tar:
            named = member.name.endswith(("/campaign.json", f"/{PROGRAM}"))
            if named and (file := tar.extractfile(member)):
                header: dict[str, Any] = json.loads(file.read())
                return header
    return {}


def _command(header: Mapping[str, Any]) -> str:
    """The command line; of the JSON of a bench, flags that ask the same."""
    if "command" in header:
        return command(Replacing({}).json(header["command"], "command"))  # older ones have folders
    asked = header["question"]
    factors, launches = asked["factors"], asked["launches"]
    flags = {
        "ops": factors["operations"],
        "sizes": factors["sizes"],
        "forms": factors["forms"],
        "peers": [*launches["mpis"], *(name for name in factors["transports"] if name in NO_MPI)],
        "ranks": launches["ranks"],
        "blocks": [launches["blocks"]],
    }
    words = [f"--{name} {','.join(map(str, values))}" for name, values in flags.items()]
    words += ["--private"] * (NUMPY in factors.get("buffers", ()))
    return " ".join(["./inv bench --json", *words])


def _machine(facts: Mapping[str, str]) -> str:
    """Processor, CPUs, memory and kernel, as far as they are stored."""
    memory = facts.get("memory_total", "").removesuffix(" kB")
    parts = [
        facts.get("cpu", ""),
        f"CPUs {facts['cpus_online']}" if "cpus_online" in facts else "",
        f"{int(memory) / 2**20:.0f} GiB" if memory.isdecimal() else "",
        f"Linux {facts['kernel']}" if "kernel" in facts else "",
        "virtual" if facts.get("virtual") == "yes" else "",
    ]
    return ", ".join(filter(None, parts)) or NOTHING


def unstored(root: Path) -> str:
    """A Markdown table of what pages say to have no archive."""
    return markdown(
        ["page", "numbers without an archive"],
        (
            [_link(page.relative_to(root)), " ".join(text.split()).rstrip(".")]
            for page in pages(root)
            for text in _UNSTORED.findall(page.read_text(encoding="utf-8"))
        ),
    )


def _link(page: Path) -> str:
    """A link from docs/reproduce.md to a page."""
    inside = page.is_relative_to(PAGE.parent)
    target = page.relative_to(PAGE.parent) if inside else Path("..", page)
    return f"[{page.stem}]({target})"
