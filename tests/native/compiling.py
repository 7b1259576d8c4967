"""How tests compile the C core with the test program, by the system's compiler."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "hbmcomm" / "_native"
SOURCES = sorted([*CORE.glob("*/*.c"), *HERE.glob("*/*.c")])
FLAGS = ("-std=gnu11", "-g", "-pthread", f"-I{CORE}", f"-I{HERE / 'program'}")
FLAGS += ("-fno-math-errno", "-ffp-contract=off")


def run(*command: str | Path, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
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
    """Compile every source by itself, on all cores, and link them."""
    cc = tool_at("cc")

    def compiled(number: int) -> Path:
        made = program.with_name(f"{number}.o")
        done = run(cc, *FLAGS, *flags, "-c", SOURCES[number], "-o", made)
        assert done.returncode == 0, done.stdout
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = [*pool.map(compiled, range(len(SOURCES)))]
    linked = run(cc, *FLAGS, *flags, *objects, "-lm", "-o", program)
    assert linked.returncode == 0, linked.stdout


def tool_at(name: str) -> str:
    """The path of a program; skips where there is none of that name."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} on this machine")
    return found
