"""An environment for each MPI: the wheels overwrite each other's mpiexec, hence one per MPI.

environments/mpi/mpiexec.py starts ranks from one.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.processes import scratch
from experiments.processes.captured import captured
from experiments.provision.wheels.wheelhouse import MPI_WHEELS

STAMP = ".installed"
BUILD_TOOLS = ("setuptools", "cffi")  # in an isolated build pip would take others than the pinned


class MpiMissing(ExperimentsError):
    """The environment of an MPI could not be made; the text holds pip's last lines."""


def prefix(flavour: str, root: Path = ROOT) -> Path:
    """The folder of an MPI's environment: the running one if it holds that MPI."""
    try:
        metadata.version(MPI_WHEELS[flavour])
    except metadata.PackageNotFoundError:
        return root / ".mpi" / flavour
    return Path(sys.prefix)


def ensure(
    flavour: str, say: Callable[[str], None], root: Path = ROOT, extras: Sequence[str] = ()
) -> Path:
    """The environment of an MPI, made where it is missing or out of date.

    Args:
        extras: distributions that ranks need beside the project; the running environment is left
            as it is.

    Raises:
        MpiMissing: pip could not make it.
    """
    folder = prefix(flavour, root)
    if folder == Path(sys.prefix):
        return folder
    wanted = pins(root, sys.version)
    python = folder / "bin/python"
    stamp = folder / STAMP
    # pip inherits the lock, so the next process waits for pip if this one is killed
    with scratch.locked(folder.parent, f"{folder.name}.lock") as lock:
        held = stamp.read_text(encoding="ascii").split() if stamp.is_file() else []
        if held[:1] != [wanted]:
            say(f"mpi: making an environment for {flavour}")
            _run([sys.executable, "-m", "venv", "--clear", str(folder)], flavour, lock)
            _run(install_command(python, root, *BUILD_TOOLS), flavour, lock)
            _run(install_command(python, root, "--editable", f"{root}[{flavour}]"), flavour, lock)
            held = [wanted]
        if lacking := [each for each in extras if each not in held]:
            _run(install_command(python, root, *lacking), flavour, lock)
        stamp.write_text(" ".join([*held, *lacking]), encoding="ascii")
    return folder


def distributions(prefix: Path) -> dict[str, str]:
    """{distribution: version} in a Python environment."""
    folders = [str(folder) for folder in prefix.glob("lib/python3*/site-packages")]
    found = ((each.metadata["Name"], each.version) for each in metadata.distributions(path=folders))
    return dict(sorted(found, key=lambda each: each[0].lower()))


def install_command(python: Path, root: Path, *wanted: str) -> list[str]:
    """The command that installs pinned distributions into the environment of a Python."""
    return [
        *(str(python), "-m", "pip", "install", "-q"),
        *("--disable-pip-version-check", "--constraint", str(root / "constraints.txt")),
        "--no-build-isolation",
        *wanted,
    ]


def _run(command: list[str], flavour: str, lock: int) -> None:
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = captured(command, env=clean, pass_fds=(lock,))
    if done.returncode:
        lines = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise MpiMissing(
            f"the environment for {flavour} could not be made:\n{lines}\n"
            "see that pip reaches its registry, then try again"
        )


def pins(root: Path, python: str = "") -> str:
    """A hash that changes with what is to be installed, and with a version of Python."""
    digest = hashlib.sha256(python.encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()
