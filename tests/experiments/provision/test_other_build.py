"""Another build of the library is found, copied once, compiled where needed, and named."""

import contextlib
import os
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from experiments.model.errors import ExperimentsError
from experiments.provision.other_build import OtherBuildMissing, prepare

SETUP = """
import pathlib
core = pathlib.Path("hbmcomm/_native/source.c").read_text()
if "fail" in core:
    raise SystemExit("source.c:1: error: it does not compile")
pathlib.Path("hbmcomm/_native/_core.abi3.so").write_text("compiled " + core)
"""


def checkout(folder: Path) -> Path:
    """A checkout with its setup.py as the "compiler"."""
    native = folder / "hbmcomm" / "_native"
    native.mkdir(parents=True)
    (folder / "hbmcomm" / "__init__.py").write_text("")
    (native / "source.c").write_text("one")
    (native / "_core.abi3.so").write_text("stale")
    (folder / "setup.py").write_text(SETUP)
    (folder / "pyproject.toml").write_text('[project]\nname = "hbmcomm"\nversion = "0.9.1"\n')
    return folder


def made(folder: Path, copies: Path) -> tuple[tuple[str, Path], list[str]]:
    lines: list[str] = []
    return prepare(folder, lines.append, copies), lines


def core(build: tuple[str, Path]) -> str:
    return (build[1] / "_native" / "_core.abi3.so").read_text()


def test_a_checkout_is_compiled_once_and_its_own_binary_is_not_taken(tmp_path: Path) -> None:
    source = checkout(tmp_path / "checkout")
    first, lines = made(source, tmp_path / "copies")
    assert lines == ["against: copying 0.9.1 and compiling its core"]
    assert core(first) == "compiled one"
    assert (source / "hbmcomm/_native/_core.abi3.so").read_text() == "stale"
    second, lines = made(source, tmp_path / "copies")
    assert (second, lines) == (first, [])


def test_a_change_is_another_copy_and_the_first_stays_as_it_was(tmp_path: Path) -> None:
    source = checkout(tmp_path / "checkout")
    first, _ = made(source, tmp_path / "copies")
    (source / "hbmcomm/_native/source.c").write_text("two")
    second, _ = made(source, tmp_path / "copies")
    assert (core(first), core(second)) == ("compiled one", "compiled two")


def test_an_installed_tree_is_copied_with_its_binary(tmp_path: Path) -> None:
    source = checkout(tmp_path / "site")
    (source / "setup.py").unlink()
    information = source / "hbmcomm-0.8.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: hbmcomm\nVersion: 0.8.2\n")
    build, lines = made(source, tmp_path / "copies")
    assert lines == ["against: copying 0.8.2"]
    assert (build[0], core(build)) == ("0.8.2", "stale")


def test_a_repository_has_its_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [variable for variable in os.environ if variable.startswith("GIT_")]:
        monkeypatch.delenv(name)  # in a hook of git they name the project's own repository
    source = checkout(tmp_path / "checkout")
    (source / ".gitignore").write_text("*.so\n")
    git = ["git", "-C", str(source), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, *words], check=True)
    wanted = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout[:7]
    assert made(source, tmp_path / "copies")[0][0] == wanted
    (source / "setup.py").write_text(SETUP + "\n")
    assert made(source, tmp_path / "copies")[0][0] == f"{wanted}-dirty"


def test_a_core_that_does_not_compile_is_reported_in_the_compilers_words(tmp_path: Path) -> None:
    source = checkout(tmp_path / "checkout")
    (source / "hbmcomm/_native/source.c").write_text("fail")
    with pytest.raises(OtherBuildMissing, match="error: it does not compile"):
        made(source, tmp_path / "copies")
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_folder_without_the_package_or_a_core_or_a_way_to_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OtherBuildMissing, match=r"holds no package hbmcomm; name a checkout"):
        made(tmp_path, tmp_path / "copies")
    source = checkout(tmp_path / "site")
    (source / "setup.py").unlink()
    (source / "hbmcomm/_native/_core.abi3.so").unlink()
    with pytest.raises(OtherBuildMissing, match=r"neither a compiled core nor a setup\.py"):
        made(source, tmp_path / "copies")


def test_a_strange_pyproject_ends_in_no_name_of_its_own_or_one_message(tmp_path: Path) -> None:
    source = checkout(tmp_path / "checkout")
    for version in ("'1\\u001b[31m'", "5", "[1]", "'$(id)'"):
        (source / "pyproject.toml").write_text(f"[project]\nversion = {version}\n")
        (label, _), _ = made(source, tmp_path / "copies")
        assert label == ("5" if version == "5" else "unknown"), version
    for text in ("project = 5", "version = " + "[" * 5000, "x = " + "9" * 5000):
        (source / "pyproject.toml").write_text(text)
        with contextlib.suppress(ExperimentsError):
            assert made(source, tmp_path / "copies")[0][0] == "checkout"


def test_a_pipe_or_a_device_in_a_checkout_is_not_read(tmp_path: Path) -> None:
    for place, kind in product(
        ("pyproject.toml", "hbmcomm/pipe"), (os.mkfifo, lambda path: path.symlink_to("/dev/zero"))
    ):
        source = checkout(tmp_path / "checkout")
        (source / place).unlink(missing_ok=True)
        kind(source / place)
        with pytest.raises(ExperimentsError, match=rf"{place}.* no(t a)? plain file"):
            made(source, tmp_path / "copies")
        shutil.rmtree(source)
