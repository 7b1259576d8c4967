"""A compiled C++ part is taken where it fits this torch and these sources, and nowhere else."""

import shutil
import sysconfig
from pathlib import Path

import pytest

from hbmcomm import compiled_shims


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only compiled part: for torch 2.13 on x86_64."""
    monkeypatch.setattr(compiled_shims, "COMPILED", tmp_path)
    path = tmp_path / compiled_shims.file_name("2.13", "x86_64")
    path.touch()
    return path


def test_builds_of_torch_itself_of_the_minor_version_take_it(part: Path) -> None:
    for version in ("2.13.0", "2.13.1+cpu", "2.13.0+cu128", "2.13.0+rocm6.4"):
        assert compiled_shims.fitting(version, "x86_64", True) == part, version


def test_no_other_torch_takes_it(part: Path) -> None:
    for version in ("2.14.0", "2.1.13", "2.13.0a0+git1b2c3d4", "2.13.0.dev20260101+cpu"):
        assert compiled_shims.fitting(version, "x86_64", True) is None, version
    for other in (("2.13.0+vendor", "x86_64", True), ("2.13.0", "aarch64", True)):
        assert compiled_shims.fitting(*other) is None, other
    assert compiled_shims.fitting("2.13.0", "x86_64", False) is None  # another C++ ABI


def test_a_python_without_the_interpreters_lock_does_not_take_it(
    part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": 1}.get)
    assert compiled_shims.fitting("2.13.0", "x86_64", True) is None


@pytest.mark.parametrize(
    ("folder", "name"), [("SOURCES", "group.cpp"), ("SOURCES", "core.h"), ("NATIVE", "interface.h")]
)
def test_one_of_other_sources_or_of_another_core_is_stale(
    part: Path, folder: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / folder
    shutil.copytree(getattr(compiled_shims, folder), copy)
    monkeypatch.setattr(compiled_shims, folder, copy)
    assert compiled_shims.fitting("2.13.0", "x86_64", True) == part
    with (copy / name).open("a") as source:
        source.write("\n")
    assert compiled_shims.fitting("2.13.0", "x86_64", True) is None


def test_one_of_other_flags_is_stale(part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_shims, "FLAGS", ["-O0"])
    assert compiled_shims.fitting("2.13.0", "x86_64", True) is None


def test_the_versions_that_have_one_are_listed_by_number(part: Path) -> None:
    for minor, machine in (("2.9", "x86_64"), ("2.14", "aarch64")):
        (part.parent / compiled_shims.file_name(minor, machine)).touch()
    assert compiled_shims.minors("x86_64") == ["2.9", "2.13"]
