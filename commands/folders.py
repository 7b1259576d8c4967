"""Where a command reads and writes: the folder that a flag names, or the default."""

import contextlib
import os
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

from experiments.model.errors import ExperimentsError
from experiments.results import program_runs
from experiments.results.store import ResultsError
from experiments.results.unarchive import opened

RESULTS = Path("results")
FIGURES = Path("figures")
HEADERS = ("campaign.json", program_runs.NAME)
"""The file that makes a folder one of results."""


def new_results(name: str, out: str) -> Path:
    """The folder for a new campaign: --out, or one named after the time."""
    return Path(out) if out else RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def new_figures(flag: str, folder: str, results: Path) -> Path:
    """The folder for a campaign's figures: the flag's, or one named after its results.

    Raises:
        ExperimentsError: it cannot be written.
    """
    return writable(flag, Path(folder) if folder else FIGURES / results.name)


def newest() -> Path:
    """The results folder of the campaign begun last.

    Raises:
        ResultsError: there is none.
    """
    headers = [path for name in HEADERS for path in RESULTS.glob(f"*/{name}")]
    oldest_first = sorted(headers, key=lambda path: path.stat().st_mtime)
    if not oldest_first:
        raise ResultsError(
            f"there is no campaign in {RESULTS}/; measure one: ./inv run, or name one with "
            "--results or --out"
        )
    return oldest_first[-1].parent


def stored(results: str | None) -> AbstractContextManager[Path]:
    """The results folder that --results names, unpacked where it is an archive, or the newest."""
    return opened(Path(results) if results else newest())


def writable(flag: str, folder: Path) -> Path:
    """The folder, checked before any work is done for it. What the check makes is removed again.

    Raises:
        ExperimentsError: it cannot be made or written; names the flag.
    """
    made: list[Path] = []
    try:
        made += [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise ExperimentsError(
            f"cannot write into {folder} ({error.strerror}); name another folder with --{flag}"
        ) from None
    finally:
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()


def writable_file(flag: str, path: Path) -> Path:
    """The path of a file to write, checked as writable() checks a folder; it may exist.

    The file replaces what is there: a link stays, and a device is refused.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path  # takes links in a circle
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise ExperimentsError(f"{path} is {kind}; name a file with --{flag}")
    writable(flag, path.parent)
    return path
