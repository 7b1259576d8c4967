"""A campaign as one file to hand over: raw data, logs, environment, figures, report, checksums.

Unpacked, it is a results folder again; unarchive.py does that. A folder always gives the same
bytes: entries by name, without owners and times. Names of the machine that measured are words.
"""

import errno
import hashlib
import io
import os
import re
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from experiments.model.checkout import ROOT
from experiments.processes.files import whole_file
from experiments.results import local_names, store, typed
from experiments.results.store import ResultsError
from experiments.results.unarchive import PART, SUMS

SUFFIX = ".tar.xz"
DRAWN = "figures"
FORMAT = "format"
"""Where an archive explains its files."""
PAGE = ROOT / "docs" / "results-format.md"
SCHEMAS = ROOT / "docs" / "schemas"
PARTS = ("launches", "failed", "blocks", "logs")
NAMES = {
    "type": "object",
    "additionalProperties": {"type": "array", "items": {"type": "string"}},
}
PUBLISHED = ROOT / "docs" / "data"
REVISION = re.compile(r"[0-9a-f]{40}")
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
    path = asked or Path(f"{name}{SUFFIX}")
    if not path.name.endswith(SUFFIX):
        raise ResultsError(f"--out {path} must end in {SUFFIX}, which is what an archive is")
    return path


def revision_fault(revision: str, in_history: Callable[[str], bool]) -> str:
    """Why nobody can check out the code that a campaign ran; "" where one can."""
    if not REVISION.fullmatch(revision):
        clean = revision.removesuffix("-dirty")
        return f"changes on top of {clean}" if clean != revision else f"the revision {revision!r}"
    return "" if in_history(revision) else f"{revision}, which is not in this checkout's history"


def refuse_unrepeatable(
    folder: Path, target: Path, in_history: Callable[[str], bool], say: Callable[[str], None]
) -> None:
    """Refuse a campaign for docs/data if nobody can check out its code; elsewhere, say so.

    Raises:
        ResultsError: names the revision.
    """
    name = store.PROGRAM if (folder / store.PROGRAM).exists() else "campaign.json"
    revision = str(_values(folder / name).get("git", "unknown"))
    if fault := revision_fault(revision, in_history):
        text = f"{folder} was measured with {fault}, so that nobody can repeat it"
        if target.resolve().parent == PUBLISHED:
            raise ResultsError(f"{text}; commit, measure again, and archive that into docs/data")
        say(f"{text}; the archive names that revision")


def archive(
    folder: Path,
    draw: Callable[[Path, Path], object],
    out: Path,
    say: Callable[[str], None] = print,
) -> str:
    """Write the archive of a results folder, whole or not at all; answer with its SHA-256.

    Args:
        folder: the results folder.
        draw: takes the folder as the archive has it, and one for its figures, tables and report.
        out: as target() gives it.
        say: takes what is left out: links, whatever they lead to, pipes and devices.

    Raises:
        ResultsError: a file is too large.
    """
    folder, sums = folder.resolve(), io.StringIO()
    with tempfile.TemporaryDirectory(prefix="hbmcomm-archive-") as place, whole_file(out) as file:
        whole = Path(place, folder.name)
        left_out = _copy(folder, whole)
        (whole / DRAWN).mkdir(parents=True)
        draw(whole, whole / DRAWN)
        files = (path for path in whole.rglob("*") if path.is_file())
        entries = {path.relative_to(whole).as_posix(): path for path in files}
        entries |= {f"{FORMAT}/{path.name}": path for path in (PAGE, *SCHEMAS.iterdir())}
        with tarfile.open(
            fileobj=file, mode="w:xz", preset=PRESET, format=tarfile.PAX_FORMAT
        ) as tar:
            for entry in sorted(entries):
                content = entries[entry].read_bytes()
                sums.write(f"{hashlib.sha256(content).hexdigest()}  {entry}\n")
                _add(tar, f"{folder.name}/{entry}", content)
            _add(tar, f"{folder.name}/{SUMS}", sums.getvalue().encode())
        if left_out:
            say(
                f"left out of the archive, which takes plain files of {folder} alone and not what "
                f"links lead to: {', '.join(map(repr, left_out))}"
            )
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copy(folder: Path, whole: Path) -> list[str]:
    """Copy a results folder with words for names of its machine; the entries that are left out."""
    replacing, left_out = local_names.Replacing(_names(folder)), []
    for entry, path in sorted(_stored(folder)):
        content = _content(path)
        if content is None:
            left_out.append(entry)
            continue
        copy = whole / entry
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(replacing.content(entry, content))
    return left_out


def _names(folder: Path) -> local_names.Names:
    """The names of the machine that a campaign or bench was measured on."""
    if (folder / local_names.FILE).exists():
        names = store.read_json(folder / local_names.FILE, NAMES)
    else:
        names = local_names.before(_values(folder / "campaign.json"), folder)
    launches = map(_values, folder.glob("launches/*.json"))
    return {**names, **local_names.of_nodes(launches)}


def _values(path: Path) -> dict[str, Any]:
    """A stored file's JSON; nothing where it is no plain file, or damaged."""
    try:
        return typed.json_object(path, "launch" if path.parent.name == "launches" else "")
    except (OSError, ValueError):
        return {}


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

    Raises:
        ResultsError: it has more bytes than any reader takes.
    """
    most = typed.MOST_SAMPLES if path.suffix == ".npz" else typed.MOST_JSON
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        return None
    with os.fdopen(descriptor, "rb") as file:
        reached = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 (no path of a disk)
        plain = stat.S_ISREG(os.fstat(descriptor).st_mode) and reached == str(path)
        if plain and (size := os.fstat(descriptor).st_size) > most:
            raise ResultsError(
                f"{path} has {size} bytes, and an archive takes {most} of such a file; shorten or "
                "remove it, and archive again"
            )
        return file.read(most) if plain else None
