"""Other packages for tests: their source distributions, which hold their tests, and wheels.

pip fetches each once into build/sources, at the version that constraints.txt pins or the test asks
for. A test is skipped where no package registry gives it.
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.model.checkout import ROOT
from experiments.processes import scratch

PLACE = ROOT / "build" / "sources"


def source(package: str, isolated: bool = False) -> Path:
    """The unpacked source distribution of a package.

    Args:
        isolated: pip, which asks a package for its name, needs build tools of the package for that.
    """
    place = PLACE / _pinned(package)
    if not place.is_dir():
        PLACE.mkdir(parents=True, exist_ok=True)
        with scratch.folder(PLACE, "fetched-") as empty:
            words = ["download", "--no-binary", package, "--dest", str(empty)]
            _pip([*words, *([] if isolated else ["--no-build-isolation"])], _pinned(package))
            (archive,) = empty.glob("*.tar.gz")
            with tarfile.open(archive) as packed:
                packed.extractall(empty, filter="data")
            scratch.settle(empty / archive.name.removesuffix(".tar.gz"), place)
    return place


def wheels(packages: Sequence[str]) -> Path:
    """A folder for PYTHONPATH with these packages, and without those that they need themselves.

    So no environment of the project changes, and there is one mpi4py.

    Args:
        packages: Names, or NAME==VERSION where a test needs another version than the project.
    """
    pins = [_pinned(package) for package in packages]
    text = " ".join(pins) + sys.version
    place = PLACE / f"wheels-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if not place.is_dir():
        PLACE.mkdir(parents=True, exist_ok=True)
        with scratch.folder(PLACE, "fetched-") as empty:
            target = empty / "wheels"
            _pip(["install", "--no-compile", "--target", str(target)], *pins)
            scratch.settle(target, place)
    return place


def _pinned(package: str) -> str:
    """NAME==VERSION: of constraints.txt where no version is given."""
    if "==" in package:
        return package
    pins = (ROOT / "constraints.txt").read_text(encoding="ascii")
    pin = re.search(rf"^{re.escape(package)}==\S+$", pins, re.MULTILINE)
    assert pin, f"constraints.txt has no pin of {package}; add a line"
    return pin[0]


def _pip(words: Sequence[str], *packages: str) -> None:
    """Run a command of pip; skip the test where the registry has no such packages."""
    command = [sys.executable, "-m", "pip", *words, "-q", "--disable-pip-version-check"]
    command += ["--no-deps", *packages]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        if "No matching distribution found" in done.stderr:
            pytest.skip(f"no package registry gave {', '.join(packages)}")
        pytest.fail(f"pip could not fetch {', '.join(packages)}:\n{done.stderr}")
