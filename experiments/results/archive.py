"""A campaign as one file to hand over: raw data, logs, environment, figures, report, checksums.

Unpacked, it is a results folder again; unarchive.py does that. A folder always gives the same
bytes: entries by name, without owners and times.
"""

import errno
import hashlib
import io
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from experiments.model.checkout import ROOT
from experiments.processes.whole_file import whole_file
from experiments.results.store import ResultsError
from experiments.results.unarchive import PART, SUMS

SUFFIX = ".tar.xz"
DRAWN = "figures"
FORMAT = "format"
"""Where an archive explains its files."""
PAGE = ROOT / "docs" / "results-format.md"
SCHEMAS = ROOT / "docs" / "schemas"
PARTS = ("launches", "failed", "logs")
EPOCH = 315532800  # 1980: tar warns of files from 1970
PRESET: Final = 9


def target(folder: Path, asked: Path | None) -> Path:
    """The file that an archive of a results folder becomes, refused before any work is done for it.

    Raises:
        ResultsError: there is no such folder, or the name asked for is no archive's.
    """
    if not folder.is_dir():
        raise ResultsError(f"there is no results folder {folder}; make one: ./inv run --out DIR")
    name = folder.resolve().name
    if not PART.fullmatch(name):
        raise ResultsError(
            f"the folder's name {name!r} would be the archive's, which takes letters, digits and "
            f"._+- only: rename it, as to {re.sub('[^A-Za-z0-9._+-]', '-', name).lstrip('.-')!r}"
        )
    found = asked or Path(f"{name}{SUFFIX}")
    if not found.name.endswith(SUFFIX):
        raise ResultsError(f"--out {found} must end in {SUFFIX}, which is what an archive is")
    return found


def archive(folder: Path, drawn: Path, out: Path, say: Callable[[str], None] = print) -> str:
    """Write the archive of a results folder, whole or not at all; answer with its SHA-256.

    Args:
        folder: the results folder.
        drawn: a folder with its figures, tables and report.
        out: as target() gives it.
        say: takes what is left out: links, whatever they lead to, pipes and devices.
    """
    folder, name = folder.resolve(), folder.resolve().name
    entries = {**dict(_stored(folder)), **dict(_below(drawn.resolve(), DRAWN))}
    entries |= {f"{FORMAT}/{path.name}": path for path in (PAGE, *SCHEMAS.iterdir())}
    sums, left_out = io.StringIO(), []
    with whole_file(out) as file:
        with tarfile.open(
            fileobj=file, mode="w:xz", preset=PRESET, format=tarfile.PAX_FORMAT
        ) as tar:
            for entry in sorted(entries):
                content = _content(entries[entry])
                if content is None:
                    left_out.append(entry)
                    continue
                sums.write(f"{hashlib.sha256(content).hexdigest()}  {entry}\n")
                _add(tar, f"{name}/{entry}", content)
            _add(tar, f"{name}/{SUMS}", sums.getvalue().encode())
        if left_out:
            say(
                f"left out of the archive, which takes plain files of {folder} alone and not what "
                f"links lead to: {', '.join(map(repr, left_out))}"
            )
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(content), EPOCH
    tar.addfile(entry, io.BytesIO(content))


def _stored(folder: Path) -> Iterator[tuple[str, Path]]:
    """What a campaign or a bench keeps: its JSON files, launches, failures and logs."""
    for path in folder.glob("[!.]*.json"):
        yield path.name, path
    for part in PARTS:
        yield from _below(folder / part, part)


def _below(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Everything but folders at any depth; a name that begins with a dot is of something under way.

    A link is an entry itself, whatever it leads to.
    """
    if folder.is_symlink():
        yield name, folder
        return
    for path in folder.rglob("[!.]*"):
        if path.is_symlink() or not path.is_dir():
            yield f"{name}/{path.relative_to(folder).as_posix()}", path


def _content(path: Path) -> bytes | None:
    """What a plain file holds; None of anything else, and where a link is on the way to it.

    Args:
        path: without links.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        return None
    with os.fdopen(descriptor, "rb") as file:
        reached = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 (no path of a disk)
        plain = stat.S_ISREG(os.fstat(descriptor).st_mode) and reached == str(path)
        return file.read() if plain else None
