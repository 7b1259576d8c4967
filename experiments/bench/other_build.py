"""Another build of the library to be measured beside this one: found, copied and compiled.

The copy keeps what is measured as it is while its checkout changes, and has a core of its own even
where the other build is this very tree.
"""

import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from experiments.model.checkout import BUILD
from experiments.model.errors import ExperimentsError
from experiments.processes import scratch
from experiments.processes.captured import captured
from experiments.processes.digest import digest
from experiments.provision.images import image

PACKAGE = "hbmcomm"
COPIES = BUILD / "against"
MAKING = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
"""What a checkout is compiled with, beside the package: pyproject.toml names the last two."""
CORE = "_native/_core*.so"
GENERATED = ("__pycache__", "_core.c", "*.o")
TOLD_LINES = 12  # of a failed build that the error message repeats


class OtherBuildMissing(ExperimentsError):
    """There is no other build in the folder that was named."""


@dataclass(frozen=True)
class OtherBuild:
    """A copy of another build that ranks can import.

    Attributes:
        label: its revision, or its version where it is no checkout.
        package: the folder of the copied package.
    """

    label: str
    package: Path


def prepare(folder: Path, say: Callable[[str], None], copies: Path = COPIES) -> OtherBuild:
    """Copy the library's package from a checkout or an installed tree; compile what has no core.

    Args:
        folder: holds the package hbmcomm, and in a checkout its setup.py.
        copies: takes the copy, by a hash of its files; one that is there is taken as it is.

    Raises:
        OtherBuildMissing: what was looked for, and where.
    """
    package = folder / PACKAGE
    if not (package / "__init__.py").is_file():
        raise OtherBuildMissing(
            f"--against {folder} holds no package {PACKAGE}; name a checkout or the folder that it "
            "is installed in (git worktree add DIR REVISION makes a checkout)"
        )
    checkout = (folder / "setup.py").is_file()
    if not checkout and not any(package.glob(CORE)):
        raise OtherBuildMissing(
            f"--against {folder} has neither a compiled core nor a setup.py to compile one"
        )
    label = _label(folder, checkout)
    target = copies / _digest(folder, checkout)
    if not target.is_dir():
        say(f"against: copying {label}" + (" and compiling its core" if checkout else ""))
        _copy(folder, target, checkout)
    return OtherBuild(label, target / PACKAGE)


def _copy(folder: Path, target: Path, checkout: bool) -> None:
    """Whole or not at all: into a neighbour, which is then renamed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch.folder(target.parent, ".copying-") as new:
        place = new / target.name
        omitted = shutil.ignore_patterns(*GENERATED, *(["*.so"] if checkout else []))
        shutil.copytree(folder / PACKAGE, place / PACKAGE, ignore=omitted)
        if checkout:
            for file in _making(folder):
                shutil.copy2(file, place)
            _compile(place)
        scratch.settle(place, target)


def _compile(place: Path) -> None:
    words = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
    done = captured(words, cwd=place)
    shutil.rmtree(place / "build", ignore_errors=True)
    if done.returncode or not any((place / PACKAGE).glob(CORE)):
        output = "\n".join((done.stderr or done.stdout).strip().splitlines()[-TOLD_LINES:])
        raise OtherBuildMissing(f"the core of the other build does not compile:\n{output}")


def _making(folder: Path) -> Iterator[Path]:
    return (folder / name for name in MAKING if (folder / name).is_file())


def _digest(folder: Path, checkout: bool) -> str:
    """Digest of everything that decides what the copy is; a checkout's binaries do not."""
    files = [
        path
        for path in sorted((folder / PACKAGE).rglob("*"))
        if path.is_file()
        and not any(path.match(f"**/{each}") or each in path.parts for each in GENERATED)
        and not (checkout and path.suffix == ".so")
    ]
    if checkout:
        files += _making(folder)
    named = [(str(path.relative_to(folder)), path) for path in files]
    return digest(f"{checkout} {sys.implementation.cache_tag}".encode(), named)[:16]


def _label(folder: Path, checkout: bool) -> str:
    """ "88fb54c", "88fb54c-dirty" of a checkout, else "0.1.0"."""
    if (folder / ".git").exists():
        revision, dash, dirty = image.revision(folder).partition("-")
        return f"{revision[:7]}{dash}{dirty}"
    if checkout:
        file = folder / "pyproject.toml"
        stated = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return str(stated.get("project", {}).get("version", folder.name))
    installed = next(iter(metadata.distributions(name=PACKAGE, path=[str(folder)])), None)
    return installed.version if installed else folder.name
