"""The test suite: its tools, its parts, and which of them share the machine.

Tests that start containers change the engine, and some look at the whole machine: these run one
after the other, and often wait. Beside them are emulated machines, clusters and builds of the core,
which mostly compute. All other tests run beside each other, as many as there are cores and one
more, since a test often waits without using a core.
"""

import contextlib
import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.provision import mpi_wheels

ALONE = "container or alone"
"""The marks of tests that run one after the other, in two groups beside each other."""
RARE = "rare"
"""The mark of long proofs of rare events, and of whole test suites of other packages."""
CHEAPER_STARTS = {
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's threads spin for a while, one on each core
    "PYTHONDONTWRITEBYTECODE": "",  # where it is set, each start compiles all modules
    "OMPI_MCA_btl": "^ofi",  # it sleeps for a second in MPI_Init
}
"""Variables of the tests, which start some thousand Pythons."""
NOTHING_CHOSEN = 5
"""How pytest ends where no test has the marks."""
STAMP = ".test-tools"
TORCH_STAMP = ".test-torch"
RELEASE_STAMP = ".release-tools"


def commands(marks: str, cores: int, rare: bool = False) -> list[list[str]]:
    """What is run with `python -m`, in order.

    Args:
        marks: pytest's -m, or "".
        cores: that tests may use.
        rare: Run the long proofs of rare events too; CI leaves them out.
    """
    also = (f" and ({marks})" if marks else "") + ("" if rare else f" and not {RARE}")
    beside = ["-n", str(cores + 1), "--dist", "worksteal"] if cores > 1 else []
    in_groups = ["-n", "2", "--dist", "loadscope"] if cores > 1 else []
    return [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["pytest", *beside, "-m", f"not ({ALONE}){also}"],
        ["pytest", *in_groups, "-m", f"({ALONE}){also}"],
    ]


def run(wanted: Sequence[Sequence[str]], root: Path = ROOT) -> None:
    """Every command in its turn; pytest's parts all run, whatever one of them finds.

    Raises:
        ExperimentsError: commands failed, or no test was chosen in any part.
    """
    failed: list[str] = []
    chosen, environment = False, os.environ | CHEAPER_STARTS
    with _compiling(root, environment) as compiled:
        for words in wanted:
            argv, tests = [sys.executable, "-m", *words], words[0] == "pytest"
            if tests:
                compiled()
            code = subprocess.run(argv, cwd=root, env=environment, check=False).returncode
            if tests and code == NOTHING_CHOSEN:
                continue
            chosen |= tests
            if code:
                failed.append(f"test: {' '.join(words)} failed")
                if not tests:
                    break
    if failed:
        raise ExperimentsError("\n".join(failed))
    if not chosen:
        raise ExperimentsError("test: no test has these marks; see them: pytest --markers")


@contextlib.contextmanager
def _compiling(root: Path, environment: Mapping[str, str]) -> Iterator[Callable[[], object]]:
    """Compile the tests as pytest does, which takes half a minute, on a core that linters leave.

    Else each worker of pytest does all of it. The function waits for it.
    """
    argv = [sys.executable, "-m", "pytest", "--collect-only", "--quiet"]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(argv, cwd=root, env=environment, stdout=nowhere, stderr=nowhere) as ahead:
        try:
            yield ahead.wait
        finally:
            ahead.kill()


def ensure_tools(root: Path = ROOT) -> None:
    """What tests and pages need in the running environment, pinned, once.

    Raises:
        ExperimentsError: pip could not install them.
    """
    _ensure("test", "the tools for tests and pages", STAMP, root)


def ensure_release(root: Path = ROOT) -> None:
    """What wheels are compiled and checked with, in the same way."""
    _ensure("release", "the tools for wheels", RELEASE_STAMP, root)


def _ensure(group: str, what: str, stamp_name: str, root: Path) -> None:
    wanted = mpi_wheels.pins(root)
    stamp = Path(sys.prefix) / stamp_name
    if stamp.is_file() and stamp.read_text(encoding="ascii") == wanted:
        return
    print(f"installing {what} (a few seconds)", file=sys.stderr)
    if subprocess.run(_install(group, root), cwd=root, check=False).returncode:
        raise ExperimentsError(f"pip could not install {what}; see that it reaches its registry")
    importlib.invalidate_caches()
    stamp.write_text(wanted, encoding="ascii")


def ensure_torch(root: Path = ROOT) -> None:
    """torch for CPUs, pinned, tried once; without it, one line says that its tests are skipped."""
    wanted = mpi_wheels.pins(root)
    stamp = Path(sys.prefix) / TORCH_STAMP
    if not stamp.is_file() or stamp.read_text(encoding="ascii") != wanted:
        print("installing torch for its tests, where pip can get it", file=sys.stderr)
        subprocess.run(_install("torch", root), cwd=root, capture_output=True, check=False)
        importlib.invalidate_caches()
        stamp.write_text(wanted, encoding="ascii")
    if importlib.util.find_spec("torch") is None:
        print(
            "tests of torch are skipped: pip gets no wheel of it for CPUs; to see why: "
            f"{shlex.join(_install('torch', root))}",
            file=sys.stderr,
        )


def _install(group: str, root: Path) -> list[str]:
    return mpi_wheels.pip_command(Path(sys.executable), root, "install", "--group", group)
