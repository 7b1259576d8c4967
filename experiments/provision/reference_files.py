"""Fresh copies of the files that ranks on the host map code from, for each launch of a reference.

Where the pages of a file are in memory makes calls of a microsecond up to 4 % faster or slower, as
long as they stay in the page cache: in all launches of a campaign alike. Copies have other pages,
so what their place does differs from launch to launch, and intervals hold it; the A/A pair has two
copies in each block. Paths and contents are those of the files: each copy is mounted over its file.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from experiments.environments.host import over_copies
from experiments.environments.mpiexec import mpiexec
from experiments.environments.process import Process
from experiments.processes import scratch
from experiments.processes.executables import Ended, captured

PROGRAM = """
import os
from mpi4py import MPI  # loads what the MPI chooses here
import experiments.programs.harness
import hbmcomm
from experiments.machine.loaded import mapped_code
print(*mapped_code(os.getpid()), sep="\\n")
"""
"""Prints the files that a rank maps code from, one on a line: Python, the suite and its MPI."""
FOLDER = "copies"
LIST = "fstab"


class NotCopied(Exception):
    """Why a reference runs from its own files; in words that follow "because"."""


def mapped(flavour: str, prefix: Path, place: Path) -> tuple[Path, ...]:
    """The files that a rank of an MPI maps code from, after a trial of copies of them.

    Args:
        place: the folder that copies will be in, such as a campaign's.

    Raises:
        NotCopied: no rank starts, this user may not mount a copy over a file, or programs may not
            run from the place (it is mounted noexec).
    """
    program = (str(prefix / "bin/python"), "-P", "-c", PROGRAM)
    argv, variables = mpiexec(flavour, prefix, 1, 1, program)
    shown = _run(Process(tuple(argv), variables))
    files = tuple(Path(line) for line in shown.stdout.splitlines() if line.startswith("/"))
    if shown.returncode or not files:
        raise NotCopied(f"no rank of {flavour} says which files it maps: {_last(shown)}")
    try_copies(files, place, (program[0], "-P", "-c", ""))
    return files


def try_copies(files: Sequence[Path], place: Path, program: tuple[str, ...]) -> None:
    """Run a program that maps some of the files, with copies of all of them.

    Raises:
        NotCopied: as mapped() does.
    """
    with scratch.folder(place, ".copies-") as folder:
        tried = _run(over_copies(Process(program), copied(files, folder)))
    if tried.returncode:
        raise NotCopied(f"no program runs from copies in {place}: {_last(tried)}")


def copied(files: Sequence[Path], folder: Path) -> Path:
    """Copy files into a folder; the list with which mount(8) mounts each copy over its file.

    Raises:
        OSError: there is no space.
    """
    folder.mkdir(exist_ok=True)
    lines = []
    for number, file in enumerate(files):
        shutil.copy(file, folder / str(number))
        words = (str(path).replace(" ", "\\040") for path in (folder / str(number), file))
        lines.append(f"{' '.join(words)} none bind 0 0\n")
    (folder / LIST).write_text("".join(lines), encoding="utf-8")
    return folder / LIST


def _run(process: Process) -> Ended:
    return captured(list(process.argv), env={**os.environ, **process.environment})


def _last(done: Ended) -> str:
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
