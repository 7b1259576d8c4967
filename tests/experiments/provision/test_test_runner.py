"""Every test belongs to one part of the suite, and a part that fails is not passed over."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.provision import test_runner
from tests.awaiting import wait_for

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
@pytest.mark.figures
def test_of_a_figure(): pass
@pytest.mark.rare
def test_of_what_is_rare(): pass
@pytest.mark.rare
@pytest.mark.alone
def test_of_what_is_rare_and_alone(): pass
def test_of_nothing(): {body}
"""
MARKS = ("alone", "browser", "container", "figures", "ranks", "rare")
CONFIGURATION = "[pytest]\nmarkers =\n" + "".join(f"    {mark}: a mark\n" for mark in MARKS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one test of each mark and one without."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # half of the time of a small pytest
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "test_marked.py").write_text(MARKED.format(body="pass"))
    return tmp_path


def parts(marks: str, rare: bool = False) -> list[list[list[str]]]:
    return [step for step in test_runner.commands(marks, 1, rare) if step[0][0] == "pytest"]


def chosen(marks: str, rare: bool = False) -> list[list[str]]:
    """pytest's words for each part."""
    return [words[1:] for step in parts(marks, rare) for words in step]


def test_checkers_come_first_and_tests_share_the_cores_where_there_are_several() -> None:
    for cores in (1, 2, 16):
        commands = [words for step in test_runner.commands("", cores) for words in step]
        programs = [words[0] for words in commands]
        checkers = programs[: programs.index("pytest")]
        assert set(checkers) == {"ruff", "mypy"}
        tests = commands[len(checkers) :]
        assert {words[0] for words in tests} == {"pytest"}
        workers = [int(words[words.index("-n") + 1]) for words in tests if "-n" in words]
        assert (max(workers, default=0) > cores) == (cores > 1), cores


def test_the_users_marks_hold_in_all_parts() -> None:
    assert [words[-1] for words in chosen("not container or browser")] == [
        f"{part} and (not container or browser) and not rare"
        for part in (
            "(container or alone)",
            "figures and not (container or alone)",
            "not (container or alone or figures)",
        )
    ]


def test_no_test_is_in_two_parts_or_in_none(project: Path) -> None:
    splits = {
        ("", False): [2, 1, 3],
        ("", True): [3, 1, 4],
        ("not container", False): [1, 1, 3],
        ("browser", False): [0, 0, 1],
        ("rare", True): [1, 0, 1],
    }
    commands = [words for asked in splits for words in chosen(*asked)]
    program = (
        "import json, pytest, sys\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    print('command')\n"
        "    pytest.main([*words, '-q', '--collect-only'])\n"
    )
    command = [sys.executable, "-c", program, json.dumps(commands)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    counts = [output.count("::test_of_") for output in done.stdout.split("command\n")[1:]]
    triples = [list(triple) for triple in zip(*[iter(counts)] * 3, strict=True)]
    assert dict(zip(splits, triples, strict=True)) == splits


def test_a_part_without_tests_is_no_failure_and_none_with_any_is_one(project: Path) -> None:
    test_runner.run(parts("browser"), project)
    with pytest.raises(ExperimentsError, match="no test has these marks"):
        test_runner.run(parts("browser")[:1], project)


def test_a_part_that_fails_is_named_and_the_other_runs_all_the_same(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "test_marked.py").write_text(MARKED.format(body="assert False"))
    failed = r"pytest -m not \(container or alone or figures\) and not rare failed"
    with pytest.raises(ExperimentsError, match=failed):
        test_runner.run(parts(""), project)
    output = capfd.readouterr().out
    assert output.index("2 passed") < output.index("1 passed") < output.index("1 failed, 2 passed")


def test_ctrl_c_ends_what_runs_beside_the_first(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And waits for it: tests remove what they made."""
    begun, ended = project / "begun", project / "ended"
    (project / "beside.py").write_text(
        "import pathlib, time\n"
        "try:\n"
        "    pathlib.Path('begun').touch()\n"
        "    time.sleep(100)\n"
        "finally:\n"
        "    pathlib.Path('ended').touch()\n"
    )

    def interrupted(*_: object, **__: object) -> None:
        wait_for(begun.exists, "program beside")
        raise KeyboardInterrupt

    monkeypatch.setattr(test_runner.subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        test_runner.run([[["pytest"], ["beside"]]], project)
    assert ended.exists()


def test_a_checker_that_fails_is_the_end(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ExperimentsError, match="no_such_checker failed"):
        test_runner.run([[["no_such_checker"]], *parts("")], project)
    assert "passed" not in capfd.readouterr().out


def test_environments_of_mpis_are_made_beside_the_tests(project: Path) -> None:
    (project / "tests").mkdir()
    (project / test_runner.ENVIRONMENTS).write_text("open('made', 'w').close()")
    body = "wait_for(pathlib.Path('made').exists, 'environments', 60)"
    marked = "import pathlib\nfrom tests.awaiting import wait_for" + MARKED.format(body=body)
    (project / "test_marked.py").write_text(marked)
    test_runner.run(parts("")[:1], project)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with an environment of its own, in which torch is not installed."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("some pins")
    return tmp_path


class Pip:
    """Counts what is installed, in the place of pip."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.groups: list[str] = []

    def __call__(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        assert command[:5] == [sys.executable, "-P", "-m", "pip", "install"]
        assert command[command.index("--constraint") + 1] == str(options["cwd"] / "constraints.txt")
        self.groups.append(command[command.index("--group") + 1])
        return subprocess.CompletedProcess(command, self.code)


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Pip]:
    """pip(code): from now on, pip ends with this code."""

    def begin(code: int) -> Pip:
        started = Pip(code)
        monkeypatch.setattr(subprocess, "run", started)
        return started

    return begin


def test_pip_runs_again_when_a_pin_changes(checkout: Path, pip: Callable[[int], Pip]) -> None:
    for ensure, group in ((test_runner.ensure_tools, "test"), (test_runner.ensure_torch, "torch")):
        good = pip(0)
        for times, changed in enumerate(("pyproject.toml", "constraints.txt"), 1):
            for _ in range(2):
                ensure(checkout)
                assert good.groups == [group] * times
            (checkout / changed).write_text(f"pins other than those of {group}")
        ensure(checkout)
        assert good.groups == [group] * 3


def test_tools_that_pip_lacks_are_tried_again(checkout: Path, pip: Callable[[int], Pip]) -> None:
    pip(1)
    with pytest.raises(ExperimentsError, match="see that it reaches its registry"):
        test_runner.ensure_tools(checkout)
    good = pip(0)
    test_runner.ensure_tools(checkout)
    assert good.groups == ["test"]


def test_torch_that_pip_cannot_get_is_tried_once_and_reported_in_one_line_every_time(
    checkout: Path,
    pip: Callable[[int], Pip],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad = pip(1)
    test_runner.ensure_torch(checkout)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "installing torch for its tests, where pip can get it"
    assert len(lines) == 2 and lines[1].startswith("tests of torch are skipped: ")
    assert lines[1].endswith("--group torch")
    test_runner.ensure_torch(checkout)
    assert capsys.readouterr().err.splitlines() == lines[1:]
    assert bad.groups == ["torch"]
    monkeypatch.undo()  # now there is one, from elsewhere
    monkeypatch.setattr(sys, "prefix", str(checkout))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    test_runner.ensure_torch(checkout)
    assert capsys.readouterr().err == ""


def test_torch_and_all_that_it_needs_are_pinned() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="ascii").splitlines()
        if not line.startswith("#")
    )
    assert pins["torch"].endswith("+cpu")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    direct = {re.split("[><=]", package)[0] for package in groups["torch"]}
    assert direct >= {"torch", "ninja"}
    assert direct <= set(pins)
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    needed = [need for need in metadata.requires("torch") or [] if "extra ==" not in need]
    names = {re.split(r"[ ;<>=!~(\[]", need)[0] for need in needed}
    assert {name.replace("-", "_") for name in names} <= {
        name.replace("-", "_").lower() for name in pins
    }
