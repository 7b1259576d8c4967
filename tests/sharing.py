"""What tests of all workers look at is made once: the first that needs it makes it, others wait."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

MadeOnce = Callable[[str, Callable[[Path], object]], Path]
"""What `made_once` is."""
DONE = ".made"


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """made_once(name, make): a folder that make(folder) fills, once for all workers.

    Where `make` raises, the next test that needs the folder makes it again.
    """
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder = common / "made-once" / name
        folder.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the file
            if not (folder / DONE).exists():
                shutil.rmtree(folder)  # what a `make` that raised has left
                folder.mkdir()
                make(folder)
                (folder / DONE).touch()
        return folder

    return made
