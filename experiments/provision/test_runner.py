"""The test suite: its tools, its parts, and which of them share the machine.

Tests that start containers change the engine, and some look at the whole machine: these run one
after the other, and often wait. Beside them are emulated machines, clusters and builds of the core,
which mostly compute, and those that draw figures fill the time in which both wait. All other tests
run beside each other, as many as there are cores and one more: a test often waits as well.
"""

import contextlib
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.provision import mpi_wheels

ALONE = "container or alone"
"""The marks of tests that run one after the other, in two groups beside each other."""
FIGURES = "figures"
"""The mark of tests that draw figures and pages."""
RARE = "rare"
"""The mark of long proofs of rare events, and of whole test suites of other packages."""
CHEAPER_STARTS = {
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's threads spin for a while, one on each core
    "PYTHONDONTWRITEBYTECODE": "",  # where it is set, each start compiles all modules
    "OMPI_MCA_btl": "^ofi",  # it sleeps for a second in MPI_Init
}
"""Variables of the tests, which start some thousand Pythons."""
ENVIRONMENTS = "tests/ahead.py"
"""Makes the environments of all MPIs."""
NOTHING_CHOSEN = 5
"""How pytest ends where no test has the marks."""
STAMP = ".test-tools"
TORCH_STAMP = ".test-torch"
RELEASE_STAMP = ".release-tools"


def commands(marks: str, cores: int, rare: bool = False) -> list[list[list[str]]]:
    """What is run with `python -m`, in order: steps, each of commands that run beside each other.

    Args:
        marks: pytest's -m, or "".
        cores: that tests may use.
        rare: Run the long proofs of rare events too; CI leaves them out.
    """
    also = (f" and ({marks})" if marks else "") + ("" if rare else f" and not {RARE}")
    spread = ["-n", str(cores + 1), "--dist", "worksteal"] if cores > 1 else []
    in_groups = ["-n", "2", "--dist", "loadscope"] if cores > 1 else []
    return [
        [["ruff", "check", "."]],
        [["ruff", "format", "--check", "."]],
        [["mypy"]],
        [
            ["pytest", *in_groups, "-m", f"({ALONE}){also}"],
            ["pytest", "-m", f"{FIGURES} and not ({ALONE}){also}"],
        ],
        [["pytest", *spread, "-m", f"not ({ALONE} or {FIGURES}){also}"]],
    ]


def run(wanted: Sequence[Sequence[Sequence[str]]], root: Path = ROOT) -> None:
    """Every step in its turn; pytest's parts all run, whatever one of them finds.

    Raises:
        ExperimentsError: commands failed, or no test was chosen in any part.
    """
    failed: list[str] = []
    chosen, environment = False, os.environ | CHEAPER_STARTS
    with _compiling(root, environment) as compiled:
        for step in wanted:
            tests = step[0][0] == "pytest"
            if tests:
                compiled()
            codes = _beside_each_other(step, root, environment)
            for words, code in zip(step, codes, strict=True):
                if tests and code == NOTHING_CHOSEN:
                    continue
                chosen |= tests
                if code:
                    failed.append(f"test: {' '.join(words)} failed")
            if failed and not tests:
                break
    if failed:
        raise ExperimentsError("\n".join(failed))
    if not chosen:
        raise ExperimentsError("test: no test has these marks; see them: pytest --markers")


def _beside_each_other(
    step: Sequence[Sequence[str]], root: Path, environment: Mapping[str, str]
) -> list[int]:
    """The exit codes of commands; what those after the first print comes when all have ended."""
    first, *others = [[sys.executable, "-m", *words] for words in step]
    with contextlib.ExitStack() as stack:
        started = []
        for argv in others:
            output = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(
                argv,
                cwd=root,
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            stack.callback(process.wait)
            stack.callback(process.send_signal, signal.SIGINT)  # which it does not get by Ctrl-C
            started.append((process, output))
        codes = [subprocess.run(first, cwd=root, env=environment, check=False).returncode]
        for process, output in started:
            codes.append(process.wait())
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout.buffer)
            sys.stdout.flush()
    return codes


@contextlib.contextmanager
def _compiling(root: Path, environment: Mapping[str, str]) -> Iterator[Callable[[], object]]:
    """Compile the tests as pytest does, which takes half a minute, on a core that linters leave.

    Else each worker of pytest does all of it. The function waits for it. Beside it, environments of
    MPIs are made, which no function waits for: tests that need one wait for its lock.
    """
    with contextlib.ExitStack() as stack:

        def begin(*words: str) -> subprocess.Popen[bytes]:
            argv, nowhere = [sys.executable, "-m", *words], subprocess.DEVNULL
            process = stack.enter_context(
                subprocess.Popen(argv, cwd=root, env=environment, stdout=nowhere, stderr=nowhere)
            )
            stack.callback(process.kill)
            return process

        if (root / ENVIRONMENTS).is_file():
            begin(ENVIRONMENTS.removesuffix(".py").replace("/", "."))
        yield begin("pytest", "--collect-only", "--quiet").wait


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
