"""An environment for each MPI: the wheels overwrite each other's mpiexec, hence one per MPI.

How ranks are started from one stands in environments/mpiexec.py.
"""

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.provision.wheels.wheelhouse import MPI_WHEELS

STAMP = ".installed"
BUILD_TOOLS = ("setuptools", "cffi")  # in an isolated build pip would take others than the pinned


class MpiMissing(ExperimentsError):
    """The environment of an MPI could not be made; the text holds pip's words."""


def prefix(flavour: str, root: Path = ROOT) -> Path:
    """Where an MPI's environment lies: the running one where it holds that MPI."""
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
    place = prefix(flavour, root)
    if place == Path(sys.prefix):
        return place
    wanted = _inputs(root)
    stamp = place / STAMP
    with _alone(place) as lock:
        held = stamp.read_text(encoding="ascii").split() if stamp.is_file() else []
        if held[:1] != [wanted]:
            say(f"mpi: making an environment for {flavour}")
            _run([sys.executable, "-m", "venv", "--clear", str(place)], flavour, lock)
            _run(install_command(place, root, *BUILD_TOOLS), flavour, lock)
            _run(install_command(place, root, "--editable", f"{root}[{flavour}]"), flavour, lock)
            held = [wanted]
        if lacking := [each for each in extras if each not in held]:
            _run(install_command(place, root, *lacking), flavour, lock)
        stamp.write_text(" ".join([*held, *lacking]), encoding="ascii")
    return place


def install_command(place: Path, root: Path, *wanted: str) -> list[str]:
    """What puts pinned distributions into an environment, the project built with its tools."""
    return [
        *(str(place / "bin/python"), "-m", "pip", "install", "-q"),
        *("--disable-pip-version-check", "--constraint", str(root / "constraints.txt")),
        "--no-build-isolation",
        *wanted,
    ]


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[int]:
    """Let no two processes make the same environment at once; the lock's descriptor.

    A pip that inherits it keeps the next process waiting when this one is killed.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def _run(command: list[str], flavour: str, lock: int) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=_clean_environment(),
        pass_fds=(lock,),
    )
    if done.returncode:
        told = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise MpiMissing(
            f"the environment for {flavour} could not be made:\n{told}\n"
            "see that pip reaches its registry, then try again"
        )


def _clean_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def _inputs(root: Path) -> str:
    """Changes when the environment must be made anew."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()
