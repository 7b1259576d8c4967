"""A skip that nobody has listed fails the run, beside other workers too; others do not."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests import skips

ROOT = Path(__file__).parents[1]
LISTED, TIRED = "no dpkg here", "tired"
SKIPPED = """
import pytest
@pytest.mark.skipif(True, reason="{reason}")
def test_skipped(): pass
@pytest.mark.xfail
def test_failing(): raise ValueError
def test_passing(): pass
"""
WHOLE = 'import pytest\npytest.skip("all of it", allow_module_level=True)\n'


def run(folder: Path, files: Mapping[str, str], *words: str) -> tuple[int, str]:
    """The exit code of a small pytest with the plugin, and what it printed."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.skips", *words, "tests"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_listed_reason_passes(tmp_path: Path) -> None:
    text = SKIPPED.format(reason=LISTED)
    code, printed = run(tmp_path, {"tests/experiments/test_it.py": text})
    assert code == 0
    assert "1 passed, 1 skipped, 1 xfailed" in printed


@pytest.mark.parametrize("words", [(), ("-p", "xdist.plugin", "-n", "1")], ids=["alone", "worker"])
def test_other_reasons_fail_the_run_and_so_does_a_listed_one_elsewhere(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    files = {
        "tests/experiments/test_a.py": SKIPPED.format(reason=TIRED),
        "tests/plots/test_b.py": SKIPPED.format(reason=LISTED),
        "tests/test_c.py": WHOLE,
    }
    code, printed = run(tmp_path, files, *words)
    assert code == 1
    _, _, unlisted = printed.partition(skips.TITLE)
    for line in (
        f"tests/experiments/test_a.py::test_skipped: {TIRED}",
        f"tests/plots/test_b.py::test_skipped: {LISTED}",
        "tests/test_c.py: all of it",
    ):
        assert unlisted.count(line) == 1


def test_every_entry_of_the_list_names_places_that_exist_and_says_why() -> None:
    for entry in skips.LISTED:
        assert set(entry) == {"reason", "where", "why"}
        assert entry["why"]
        for place in entry["where"]:
            assert (ROOT / place).exists(), place


def written(text: str) -> Iterator[str]:
    """The reasons of skips that a file of tests gives as plain strings."""
    for call in ast.walk(ast.parse(text)):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(("skip", "skipif")):
            reasons = [word.value for word in call.keywords if word.arg == "reason"]
            if ast.unparse(call.func) == "pytest.skip":
                reasons += call.args[:1]
            yield from (text.value for text in reasons if isinstance(text, ast.Constant))


def test_reasons_that_tests_give_are_listed_for_the_folder_where_they_are() -> None:
    """Also those that this machine does not meet: a file that moved takes no entry with it."""
    places = [
        (str(path.relative_to(ROOT)), reason)
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for reason in written(path.read_text())
    ]
    assert len(places) > 20
    assert [place for place in places if not skips.is_listed(*place)] == []
