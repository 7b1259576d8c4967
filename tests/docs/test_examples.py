"""Every example of a page runs: Python on two ranks, command lines through invoke's parser."""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from invoke import Collection
from invoke.exceptions import ParseError
from invoke.loader import FilesystemLoader
from invoke.parser import Parser

import hbmcomm
from experiments.catalogue import spec
from experiments.model.environment import MPIS
from hbmcomm.transports.tuning import TABLE
from tests.starting import Start

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS = {
    "libmemkind": hbmcomm.memkind_version() is not None,
    "a device": False,
    "a GPU": False,
    "ReFrame": False,  # tests/docs/test_reframe.py runs such a test
    "torchrun": False,  # tests/hbmcomm/torch/test_page.py runs these
}
"""What a block may need beside two ranks of MPI, and whether it is here."""
READER = "docs/results-format.md"
"""The page's program needs a results folder: tests/plots/test_documentation.py runs it."""
_BLOCK = re.compile(
    r"(?:^<!-- needs: (?P<needs>[^\n]+) -->\n)?^```python\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def test_every_variable_of_the_project_that_a_page_names_exists() -> None:
    variable = re.compile(r"HBMCOMM_[A-Z][A-Z_]*[A-Z]")
    folders = ("hbmcomm", "experiments", "commands", "plots", "tests", "docker")
    sources = [
        path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.is_file()
    ]
    known = {entry.variable for entry in TABLE}
    for path in sources:
        if path.suffix in (".py", ".sh", ".h", ".c", ".cpp"):
            known |= set(variable.findall(path.read_text(encoding="utf-8")))
    named = {(page.name, name) for page in PAGES for name in variable.findall(page.read_text())}
    assert len(named) > 10
    assert {mention for mention in named if mention[1] not in known} == set()


def test_the_pages_experiment_is_one_that_a_campaign_takes(tmp_path: Path) -> None:
    page = (ROOT / "docs/experiments.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert spec.load(str(tmp_path / "mine.toml")).factors.operations == ("allreduce",)


class Block(NamedTuple):
    """A Python block: where its text begins, and what `<!-- needs: ... -->` above it names."""

    page: str
    line: int
    needs: str
    text: str


def blocks() -> Iterator[Block]:
    """Every Python block of every page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start("text")) + 1
            name = page.relative_to(ROOT).as_posix()
            yield Block(name, line, match["needs"] or "", match["text"])


def commands() -> Iterator[tuple[str, str]]:
    """(page, command line) of every ./inv in a page, in blocks and in running text."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        inline = re.findall(r"`((?:\w+=\S+ )?\./inv [^`]+)`", text)
        in_blocks = re.findall(r"^((?:\w+=\S+ )?\./inv .+)$", text, re.MULTILINE)
        yield from ((page.name, " ".join(line.split())) for line in (*inline, *in_blocks))


def test_every_block_is_a_program_and_names_what_it_needs() -> None:
    for block in blocks():
        compile(block.text, f"{block.page}:{block.line}", "exec")
        assert block.needs in ("", *NEEDS), block.page


@pytest.mark.ranks
@pytest.mark.parametrize("mpi", [*MPIS[:2], pytest.param(MPIS[2], marks=pytest.mark.rare)])
def test_every_python_example_runs_on_two_ranks(mpirun: Start, tmp_path: Path, mpi: str) -> None:
    by_page: dict[str, list[Block]] = {}
    for block in blocks():
        if block.page != READER and NEEDS.get(block.needs, True):
            by_page.setdefault(block.page, []).append(block)
    assert {"README.md", "docs/library.md"} <= by_page.keys()
    listed = [
        [page, [(block.line, block.text) for block in those]] for page, those in by_page.items()
    ]
    asked = tmp_path / "blocks.json"
    asked.write_text(json.dumps(listed), encoding="utf-8")
    shown = mpirun(
        *(Path(__file__).parent / "ranks" / "examples.py", 2, str(asked)),
        mpi=mpi,
        env={"MEMKIND_HBW_NODES": "0"},  # HBM is emulated where there is none
    ).output
    wanted = [f"{block.page}:{block.line}" for those in by_page.values() for block in those]
    for rank in range(2):
        assert Path(f"{asked}.{rank}").read_text(encoding="utf-8").splitlines() == wanted
    assert "2 ranks, transport direct, kind hbw: 0.5" in shown


def test_every_command_is_one_that_invoke_understands(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {line: page for page, line in commands()}
    assert len(pages) > 100
    faults = []
    for line, page in pages.items():
        words = shlex.split(line, comments=True)
        words = [word for word in words[words.index("./inv") + 1 :] if word != "--help"]
        monkeypatch.setattr(sys, "argv", ["inv", *words])  # tasks.py looks there for a path
        tasks, _ = FilesystemLoader(start=str(ROOT)).load("tasks")
        known = Collection.from_module(tasks).to_contexts()
        if len(words) == 1:  # a task by its name; X is any of them
            assert words[0] in ("X", *(context.name for context in known)), page
            continue
        try:
            Parser(contexts=known).parse_argv(words)
        except ParseError as error:
            faults.append(f"{page}: {line}: {error}")
    assert faults == []


def test_every_file_that_a_page_names_exists() -> None:
    """SECURITY.md names for each interface the test which shows that an attack fails."""
    file = re.compile(
        r"`((?:hbmcomm|experiments|plots|commands|tests|docs|docker)/[\w./-]+)`|(tests/[a-z\d_/]+\.py)"
    )
    named = {
        (page.name, quoted or test)
        for page in PAGES
        for quoted, test in file.findall(page.read_text(encoding="utf-8"))
    }
    assert len([name for page, name in named if page == "SECURITY.md" and "tests/" in name]) > 5
    names = {mention for mention in named if "NAME" not in mention[1]}
    assert [mention for mention in names if not (ROOT / mention[1]).exists()] == []
