"""An archive of a campaign as the results folder that it holds; refused where it is damaged.

An archive comes from anyone. So nothing in it is trusted: no name, no size, no kind of entry.
"""

import contextlib
import hashlib
import lzma
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from experiments.model.errors import ExperimentsError
from experiments.results.store import UNPACKED, ResultsError
from experiments.results.typed import MEMORY

SUMS = "SHA256SUMS"
LARGEST = 256 * 2**20
"""Unpacked bytes that any archive may have; one that is itself large, RATIO times its size."""
RATIO = 20
MOST_FILES = 100_000
DEEPEST = 6
CHUNK = 2**20
PART = re.compile(r"[\w+@=,:-][\w.+@=,: -]{0,199}", re.ASCII)
"""A folder's or file's name; none begins with a dot."""


@contextlib.contextmanager
def opened(source: Path) -> Iterator[Path]:
    """The results folder: `source` itself, or what the archive `source` holds.

    An archive is unpacked into a temporary folder that is gone afterwards.

    Raises:
        ResultsError: the file is damaged, was changed, or would write elsewhere or without end.

    An error of the block names what is in the archive as if that were a folder.
    """
    if not source.is_file():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix=UNPACKED) as place:
        try:
            yield unpack(source, Path(place))
        except ExperimentsError as error:  # the folder is nothing to its user, and soon gone
            error.args = (str(error).replace(place, str(source)),)
            raise


def unpack(source: Path, place: Path) -> Path:
    """Unpack an archive into an empty folder; the results folder in it, every file checked."""
    entry = ""
    sums: dict[str, str] = {}
    try:
        with source.open("rb") as packed:
            stream = _Unpacked(packed, max(LARGEST, RATIO * source.stat().st_size), source)
            with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK) as tar:  # type: ignore[call-overload]
                for member in tar:
                    entry = member.name
                    if member.isdir():
                        continue
                    if len(sums) == MOST_FILES:
                        raise ResultsError(f"{source} holds more than {MOST_FILES} files")
                    sums[entry] = _extract(tar, member, place, source)
            stream.finish()
    except (lzma.LZMAError, EOFError, tarfile.TarError, ValueError, RecursionError) as error:
        where = f", after {entry}" if entry else ""
        raise ResultsError(
            f"{source} is damaged or no archive of a campaign ({error}{where}); get it again, or "
            "name a results folder"
        ) from error
    return _checked(source, place, sums)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path, source: Path) -> str:
    """Write one plain file below `place`; its SHA-256."""
    parts = member.name.split("/")
    if not (2 <= len(parts) <= DEEPEST and all(map(PART.fullmatch, parts))):
        raise ResultsError(
            f"{source} holds {ascii(member.name)[:200]}, which no campaign's file is called"
        )
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
        raise ResultsError(f"{source} holds {member.name}, which is no plain file")
    content = tar.extractfile(member)
    assert content is not None
    target = place.joinpath(*parts)
    digest = hashlib.sha256()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            while chunk := content.read(CHUNK):
                digest.update(chunk)
                file.write(chunk)
    except (FileExistsError, NotADirectoryError) as error:
        raise ResultsError(f"{source} holds {member.name} twice") from error
    return digest.hexdigest()


def _checked(source: Path, place: Path, sums: dict[str, str]) -> Path:
    """The one folder at the top, where its files are those of its SHA256SUMS."""
    tops = {name.split("/")[0] for name in sums}
    if len(tops) != 1:
        raise ResultsError(f"{source} holds {len(tops)} folders; an archive holds one campaign")
    top = tops.pop()
    listed = {}
    if sums.pop(f"{top}/{SUMS}", ""):
        text = (place / top / SUMS).read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            digest, _, name = line.partition("  ")
            if not all(map(PART.fullmatch, name.split("/"))):
                raise ResultsError(
                    f"{source}: its {SUMS} holds {ascii(line)[:80]}, which lists no campaign's file"
                )
            listed[f"{top}/{name}"] = digest
    for name in sorted({*sums, *listed}):
        if name not in listed:
            raise ResultsError(f"{source} holds {name}, which its {SUMS} does not list")
        if name not in sums:
            raise ResultsError(f"{source} lacks {name}, which its {SUMS} lists; get it again")
        if sums[name] != listed[name]:
            raise ResultsError(
                f"{source}: {name} is not what its {SUMS} says, so that the archive was changed; "
                "get it again"
            )
    for path in (place / top).rglob("*.npz"):
        _refuse_packed(source, path)
    return place / top


def _refuse_packed(source: Path, samples: Path) -> None:
    """Samples are stored as they are: what is packed once more may unpack without end."""
    try:
        with zipfile.ZipFile(samples) as held:
            whole = sum(member.file_size for member in held.infolist()) <= samples.stat().st_size
    except (zipfile.BadZipFile, NotImplementedError):
        return  # its reader reports what is wrong
    except ValueError as error:
        raise ResultsError(f"{source}: {samples.name} is damaged ({error})") from error
    if not whole:
        raise ResultsError(f"{source}: {samples.name} is packed, which no campaign's samples are")


class _Unpacked:
    """What an .xz file holds, as a file for tarfile: so much of it and no more."""

    def __init__(self, packed: IO[bytes], limit: int, source: Path) -> None:
        self._packed, self._left, self._source = packed, limit, source
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        unpacked = b""
        while not unpacked and not self._xz.eof:
            more = self._packed.read(CHUNK) if self._xz.needs_input else b""
            if self._xz.needs_input and not more:
                raise EOFError("it is cut short")
            unpacked = self._xz.decompress(more, size)
        self._left -= len(unpacked)
        if self._left < 0:
            raise ResultsError(
                f"{self._source} unpacks to far more than a campaign of its size has; it is not "
                "an archive of a campaign"
            )
        return unpacked

    def finish(self) -> None:
        """Read to the end, so that the checksum of the whole is checked."""
        while self.read(CHUNK):
            pass
        if self._xz.unused_data or self._packed.read(1):
            raise EOFError("something follows its end")
