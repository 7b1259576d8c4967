"""The files of the C core form layers: no file depends on one that depends on it, nor any folder.

A header and the source of the same name are one unit. A unit depends on another if one of its files
includes the other's header, or if its object uses a symbol that the other's object defines.
"""

import re
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.native import compiling
from tests.native.compiling import CORE, tool_at

SOURCES = compiling.CORE_SOURCES
HEADERS = sorted([*CORE.glob("*.h"), *CORE.glob("*/*.h")])
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FLAGS = (*compiling.FLAGS, "-O0", "-DHBM_ONE_CLONE", "-c")


def _includes() -> Iterator[tuple[str, str]]:
    for path in (*SOURCES, *HEADERS):
        for header in INCLUDE.findall(path.read_text()):
            yield path.stem, Path(header).stem


def _symbols(folder: Path) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The unit that defines each symbol; (unit, symbol) for all symbols that a unit lacks."""
    subprocess.run([tool_at("cc"), *FLAGS, *map(str, SOURCES)], cwd=folder, check=True)
    defined: dict[str, str] = {}
    used: list[tuple[str, str]] = []
    for source in SOURCES:
        command = [tool_at("nm"), "--extern-only", "--format=posix", f"{source.stem}.o"]
        listed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        for line in listed.stdout.splitlines():
            name, kind = line.split()[:2]
            if kind == "U":
                used.append((source.stem, name))
            else:
                defined[name] = source.stem
    return defined, used


def test_no_file_depends_on_one_that_depends_on_it(tmp_path: Path) -> None:
    defined, used = _symbols(tmp_path)
    calls = [(unit, defined[name]) for unit, name in used if name in defined]
    arrows = [*_includes(), *calls]
    _refuse_circle("files", arrows)
    folder = {path.stem: path.parent.name for path in (*SOURCES, *HEADERS)}
    _refuse_circle("folders", [(folder[unit], folder[other]) for unit, other in arrows])


def _refuse_circle(what: str, arrows: Iterable[tuple[str, str]]) -> None:
    layers: dict[str, set[str]] = {}
    for one, other in arrows:
        if one != other:
            layers.setdefault(one, set()).add(other)
    try:
        TopologicalSorter(layers).prepare()
    except CycleError as error:
        pytest.fail(f"{what} depend on each other: " + " <- ".join(error.args[1]))


def test_every_header_compiles_on_its_own(tmp_path: Path) -> None:
    source = tmp_path / "one.c"
    python = f"-I{sysconfig.get_path('include')}"  # for those that know Python
    for header in HEADERS:
        source.write_text(f'#include <stdint.h>\n#include "{header.relative_to(CORE)}"\n')
        command = [tool_at("cc"), *FLAGS, python, str(source)]
        built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
