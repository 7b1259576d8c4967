"""How tests compile the C core with the test program: with the flags of the library's own build."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from hbmcomm._native.build import flags as library_flags

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CORE = ROOT / "hbmcomm" / "_native"
PARAMETER_SERVER = ROOT / "hbmcomm" / "training" / "parameter_server"
CORE_SOURCES = sorted([*CORE.glob("*/*.c"), *PARAMETER_SERVER.glob("*.c")])
PROGRAM_SOURCES = sorted(HERE.glob("*/*.c"))
SOURCES = [*CORE_SOURCES, *PROGRAM_SOURCES]
FOLDERS = (f"-I{CORE}", f"-I{PARAMETER_SERVER}", f"-I{HERE / 'program'}")
FLAGS = (*library_flags(sysconfig.get_platform()), "-g", *FOLDERS)

ARITHMETIC = [path for path in CORE_SOURCES if path.parent.name in ("kernels", "parameter_server")]
"""All that computes with a caller's numbers; the other sources move bytes."""
ARITHMETIC_TESTS = ("kernels", "reductions", "halves", "optimizers", "updates")
"""The tests of the program that compare the bits of results with those of a reference."""


@dataclass(frozen=True)
class Compiler:
    """A compiler with the flags of the library for the machines that it compiles for."""

    command: str
    flags: tuple[str, ...]


HOST = Compiler("cc", FLAGS)
ARM_PACKAGES = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
ARM = Compiler("aarch64-linux-gnu-gcc", (*library_flags("linux-aarch64"), "-g", *FOLDERS))


def run(*command: str | Path, seconds: float = 240.0) -> subprocess.CompletedProcess[str]:
    """A program's exit code, and all that it printed."""
    environment = os.environ | {"TSAN_OPTIONS": "halt_on_error=1"}
    return subprocess.run(
        [str(part) for part in command],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds,
    )


def build(program: Path, *flags: str) -> None:
    """Compile every source with `flags` after those of the library, and link them."""
    link(program, compile_each(program.parent, SOURCES, after=flags), after=flags)


def compile_each(
    folder: Path,
    sources: Sequence[Path],
    compiler: Compiler = HOST,
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> list[Path]:
    """Compile every source by itself, on all cores; the objects, in `folder`.

    Args:
        before: Flags before those of the library, as CFLAGS of a user are.
        after: Flags after those of the library.
    """
    cc = tool_at(compiler.command)

    def compiled(source: Path) -> Path:
        made = folder / "-".join(source.relative_to(ROOT).with_suffix(".o").parts)
        done = run(cc, *before, *compiler.flags, *after, "-c", source, "-o", made, seconds=300)
        assert done.returncode == 0, done.stdout
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [*pool.map(compiled, sources)]


def link(
    program: Path,
    objects: Iterable[Path],
    compiler: Compiler = HOST,
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> None:
    """Link objects; `before` and `after` are flags as for `compile_each`."""
    cc = tool_at(compiler.command)
    linked = run(cc, *before, *compiler.flags, *after, *objects, "-lm", "-o", program)
    assert linked.returncode == 0, linked.stdout


def tool_at(name: str, packages: str = "") -> str:
    """The path of a program; skips where there is none, and names Debian's packages for it."""
    path = shutil.which(name)
    if path is None:
        remedy = f": apt-get install {packages}" if packages else ""
        pytest.skip(f"there is no {name} on this machine{remedy}")
    return path
