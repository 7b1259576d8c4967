"""Compilers have nothing to say about the core."""

import sysconfig
from pathlib import Path

import pytest

from tests.native.compiling import CORE, FLAGS, SOURCES, run, tool_at

WARNINGS = (
    "-Wall -Wextra -Wshadow -Wvla -Wundef -Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes "
    "-Wold-style-definition -Wconversion -Wsign-conversion -Wdouble-promotion"
)


@pytest.mark.rare  # a minute of one core
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_have_no_warnings(compiler: str, tmp_path: Path) -> None:
    strict = (*WARNINGS.split(), "-Werror", "-O2", "-DHBM_ONE_CLONE")
    if compiler == "clang":  # it has no ivdep, and works without
        strict = (*strict, "-Wno-unknown-pragmas")
    built = run(tool_at(compiler), *FLAGS, *strict, *SOURCES, "-lm", "-o", tmp_path / "core_test")
    assert built.returncode == 0, built.stdout
    python = ("-isystem", sysconfig.get_path("include"))
    built = run(
        tool_at(compiler),
        *FLAGS,
        *strict,
        *python,
        "-fsyntax-only",
        *(CORE / name for name in ("methods.c", "objects.c")),
    )
    assert built.returncode == 0, built.stdout
