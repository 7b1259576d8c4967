"""A campaign as one file to hand over: raw data, logs, environment, figures, report, checksums.

Unpacked, it is a results folder again; unarchive.py does that. A folder always gives the same
bytes: entries by name, without owners and times.
"""

import hashlib
import io
import re
import tarfile
from collections.abc import Iterator
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


def archive(folder: Path, drawn: Path, out: Path) -> str:
    """Write the archive of a results folder, whole or not at all; answer with its SHA-256.

    Args:
        folder: the results folder.
        drawn: a folder with its figures, tables and report.
        out: as target() gives it.
    """
    name = folder.resolve().name
    entries = {**dict(_stored(folder)), **dict(_below(drawn, DRAWN))}
    entries |= {f"{FORMAT}/{path.name}": path for path in (PAGE, *SCHEMAS.iterdir())}
    sums = io.StringIO()
    with whole_file(out) as temporary:
        with tarfile.open(temporary, "w:xz", preset=PRESET, format=tarfile.PAX_FORMAT) as tar:
            for entry in sorted(entries):
                content = entries[entry].read_bytes()
                sums.write(f"{hashlib.sha256(content).hexdigest()}  {entry}\n")
                _add(tar, f"{name}/{entry}", content)
            _add(tar, f"{name}/{SUMS}", sums.getvalue().encode())
        return hashlib.sha256(temporary.read_bytes()).hexdigest()


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
    """Plain files at any depth; a name that begins with a dot is of something under way."""
    for path in folder.rglob("[!.]*"):
        if path.is_file() and not path.is_symlink():
            yield f"{name}/{path.relative_to(folder).as_posix()}", path
