"""Every archive of docs/data can be repeated and names no machine, but for a list with reasons."""

import itertools
import json
import subprocess
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.provision.image import in_history
from experiments.results.archive import PUBLISHED, revision_fault
from experiments.results.local_names import Replacing
from plots.tables import stored_bench

ROOT = Path(__file__).parents[2]
LISTED = tomllib.loads((PUBLISHED / "unrepeatable.toml").read_text(encoding="utf-8"))
HEADERS = ("campaign.json", "program.json")
STAND_IN = "/opt/hbmcomm-checkout"
"""What archives have in place of their checkout's path that were made before words."""


def contents(archive: Path) -> Iterator[tuple[str, bytes]]:
    """(path in the campaign, content) of every file, campaign.json before launches and logs."""
    with tarfile.open(archive, "r|xz") as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file:
                yield member.name.partition("/")[2], file.read()


def test_every_archive_names_a_clean_revision_of_the_history_or_is_listed() -> None:
    git = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    if subprocess.run(git, capture_output=True, text=True, check=False).stdout != "false\n":
        pytest.skip("this copy of the tree has no history")
    headers = {path: stored_bench.load(path) for path in PUBLISHED.glob("*.json.xz")}
    for path in PUBLISHED.glob("*.tar.xz"):
        header = next(content for name, content in contents(path) if name in HEADERS)
        headers[path] = json.loads(header)
    faults = {
        path.name.partition(".")[0]
        for path, header in headers.items()
        if revision_fault(header.get("git", "unknown"), in_history)
    }
    assert faults == set(LISTED["revision"])


def names_a_folder(archive: Path) -> bool:
    """Whether `./inv archive` would write words where this archive has folders."""
    replacing = Replacing({"CHECKOUT": [STAND_IN]})
    for name, content in contents(archive):
        if name in HEADERS:
            command = json.loads(content)["command"]
            roots = [root for flag, root in itertools.pairwise(command) if flag == "--search-root"]
            replacing = Replacing({"CHECKOUT": [STAND_IN, *roots]})
        kept = content.replace(STAND_IN.encode(), b"CHECKOUT")
        if not name.endswith(".npz") and replacing.content(name, content) != kept:
            return True
    return False


def test_no_archive_names_a_folder_of_its_machine_unless_it_is_listed() -> None:
    named = {
        path.name.removesuffix(".tar.xz")
        for path in PUBLISHED.glob("*.tar.xz")
        if names_a_folder(path)
    }
    assert named == set(LISTED["names"])
