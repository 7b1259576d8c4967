"""Another build of the library to be measured beside this one: found, copied and compiled.

The copy keeps what is measured as it is while its checkout changes, and has a core of its own even
where the other build is this very tree.
"""

import re
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from experiments.model.checkout import OTHER_BUILDS
from experiments.model.errors import ExperimentsError
from experiments.model.validation import toml
from experiments.processes import scratch
from experiments.processes.executables import captured
from experiments.processes.files import digest
from experiments.provision import image

PACKAGE = "hbmcomm"
MAKING = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
"""What a checkout is compiled with, beside the package: pyproject.toml names the last two."""
CORE = "_native/_core*.so"
GENERATED = ("__pycache__", "_core.c", "*.o")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,79}")
TOLD_LINES = 12  # of a failed build that the error message repeats


class OtherBuildMissing(ExperimentsError):
    """There is no other build in the folder that was named."""


def prepare(
    folder: Path, say: Callable[[str], None], copies: Path = OTHER_BUILDS
) -> tuple[str, Path]:
    """Copy the library's package from a checkout or an installed tree; compile what has no core.

    Args:
        folder: holds the package hbmcomm, and in a checkout its setup.py.
        copies: takes the copy, by a hash of its files; one that is there is taken as it is.

    Returns:
        Its revision, or its version where it is not a checkout; the folder of the copied package.

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
    copies.mkdir(parents=True, exist_ok=True)
    with scratch.folder(copies, ".copying-") as new:
        place = new / "whole"
        omitted = shutil.ignore_patterns(*GENERATED, *(["*.so"] if checkout else []))
        shutil.copytree(package, place / PACKAGE, ignore=omitted, copy_function=_copy)
        for file in MAKING if checkout else ():
            if (folder / file).is_file():
                _copy(folder / file, place)
        target = copies / _digest(place, checkout)
        if not target.is_dir():
            say(f"against: copying {label}" + (" and compiling its core" if checkout else ""))
            if checkout:
                _compile(place)
            scratch.settle(place, target)
    return label, target / PACKAGE


def _copy(source: str | Path, target: str | Path) -> None:
    """copy2() of a plain file: a pipe or a device has no end."""
    if not Path(source).is_file():
        raise OtherBuildMissing(f"--against has {source}, which is no plain file; remove it")
    shutil.copy2(source, target)


def _compile(place: Path) -> None:
    words = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
    done = captured(words, cwd=place)
    shutil.rmtree(place / "build", ignore_errors=True)
    if done.returncode or not any((place / PACKAGE).glob(CORE)):
        output = "\n".join((done.stderr or done.stdout).strip().splitlines()[-TOLD_LINES:])
        raise OtherBuildMissing(f"the core of the other build does not compile:\n{output}")


def _digest(place: Path, checkout: bool) -> str:
    """Digest of the copied files, and of what else decides what they become."""
    files = sorted(path for path in place.rglob("*") if path.is_file())
    named = [(str(path.relative_to(place)), path) for path in files]
    return digest(f"{checkout} {sys.implementation.cache_tag}".encode(), named)[:16]


def _label(folder: Path, checkout: bool) -> str:
    """ "88fb54c", "88fb54c-dirty" of a checkout, else "0.1.0"; "unknown" of what is no version.

    Raises:
        SpecError: its pyproject.toml is no plain file of TOML.
    """
    if (folder / ".git").exists():
        revision, dash, dirty = image.revision(folder).partition("-")
        return f"{revision[:7]}{dash}{dirty}"
    if checkout:
        file = folder / "pyproject.toml"
        project = toml(file, str(file)).get("project") if file.exists() else None
        version = project.get("version") if isinstance(project, dict) else None
    else:
        installed = next(iter(metadata.distributions(name=PACKAGE, path=[str(folder)])), None)
        version = installed.version if installed else None
    label = str(folder.name if version is None else version)
    return label if VERSION.fullmatch(label) else "unknown"
