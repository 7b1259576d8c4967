"""Every test belongs to one part of the suite, and a part that fails is not passed over."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.provision import test_runner
from experiments.provision.test_runner import SuiteFailed

MARKED = """
import pytest
@pytest.mark.ranks
def test_of_ranks(): pass
@pytest.mark.container
def test_of_a_container(): pass
@pytest.mark.alone
def test_of_what_is_left(): pass
@pytest.mark.browser
def test_of_a_page(): pass
def test_of_nothing(): {body}
"""
CONFIGURATION = "[pytest]\nmarkers =\n    ranks: r\n    container: c\n    browser: b\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one test of each mark and one without."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # half of the time of a small pytest
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "test_marked.py").write_text(MARKED.format(body="pass"))
    return tmp_path


def parts(marks: str) -> list[list[str]]:
    return [words for words in test_runner.commands(marks, 1) if words[0] == "pytest"]


def test_what_is_checked_and_in_which_order() -> None:
    assert test_runner.commands("", 2) == [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["pytest", "-n", "2", "--dist", "loadfile", "-m", "not (ranks or container or alone)"],
        ["pytest", "-m", "(ranks or container or alone)"],
    ]


def test_the_users_marks_hold_in_both_parts() -> None:
    assert [words[-1] for words in parts("not container or browser")] == [
        "not (ranks or container or alone) and (not container or browser)",
        "(ranks or container or alone) and (not container or browser)",
    ]


@pytest.mark.parametrize(
    ("marks", "split"), [("", [2, 3]), ("not container", [2, 2]), ("browser", [1, 0])]
)
def test_no_test_is_in_two_parts_or_in_none(project: Path, marks: str, split: list[int]) -> None:
    found = []
    for words in parts(marks):
        command = [sys.executable, "-m", *words, "-q", "--collect-only"]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        found.append(sum("::" in line for line in done.stdout.splitlines()))
    assert found == split


def test_a_part_without_tests_is_no_failure_and_two_are(project: Path) -> None:
    test_runner.run(parts("browser"), project)
    with pytest.raises(SuiteFailed, match="no test has these marks"):
        test_runner.run(parts("browser and ranks"), project)


def test_a_part_that_fails_is_named_and_the_other_runs_all_the_same(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "test_marked.py").write_text(MARKED.format(body="assert False"))
    with pytest.raises(SuiteFailed, match=r"pytest -m not \(ranks or container or alone\) failed"):
        test_runner.run(parts(""), project)
    assert "3 passed" in capfd.readouterr().out


def test_what_a_checker_refuses_is_not_tested(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SuiteFailed, match="no_such_checker failed"):
        test_runner.run([["no_such_checker"], *parts("")], project)
    assert "passed" not in capfd.readouterr().out
