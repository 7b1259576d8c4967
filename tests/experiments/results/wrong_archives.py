"""Archives of a small campaign, each wrong in one way, and what a reader says of each.

A kind is what an attacker changes: entries of the archive, its compression, the text of a JSON
file, one field of it, or the arrays of a launch. Sums are made to fit, unless they are what is
wrong.
"""

import hashlib
import io
import json
import lzma
import math
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.experiments.results.test_typed import (
    HEADER,
    JSON,
    NPZ,
    campaign,
    change_samples,
    packed,
    put,
)

TOP, SUMS = "campaign", "SHA256SUMS"
Files = dict[str, bytes]
Field = tuple[str | int, ...]


class Wrong(NamedTuple):
    """One archive.

    Attributes:
        kind: what is wrong, in a word.
        name: of the archive.
        content: makes its bytes.
        says: what follows the archive's path in the message, as a regular expression.
    """

    kind: str
    name: str
    content: Callable[[], bytes]
    says: str


def entry(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    """An entry of an archive, with further fields of its header."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def sums(files: Files) -> bytes:
    """What an archive's list of sums holds."""
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    return "".join(lines).encode()


def listed(files: Files) -> Files:
    """The files and their sums."""
    return files | {SUMS: sums(files)}


def tar(files: Files, *more: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """An archive of entries that come first, and files."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entries = [entry(f"{TOP}/{name}", content) for name, content in files.items()]
        for info, content in (*more, *entries):
            archive.addfile(info, io.BytesIO(content))
    return lzma.compress(held.getvalue(), preset=0)


def bomb() -> bytes:
    """Zeros without end."""
    packer, (info, _) = lzma.LZMACompressor(preset=0), entry(f"{TOP}/x", b"", size=2**33)
    zeros = bytes(2**22)
    start = packer.compress(info.tobuf())
    return start + b"".join(packer.compress(zeros) for _ in range(80)) + packer.flush()


def of_entries(good: Files) -> Iterator[Wrong]:
    """An entry too many, of a name, a kind or a size that no campaign has."""
    called, plain = "which no campaign's file is called", "which is no plain file"
    unlisted, damaged = f"which its {SUMS} does not list", "is damaged or no archive of a campaign"
    link = {"type": tarfile.SYMTYPE, "linkname": "/etc"}
    hard = {"type": tarfile.LNKTYPE, "linkname": f"{TOP}/{HEADER}"}
    sparse = {
        "GNU.sparse.map": "0,9999999",
        "GNU.sparse.size": "9999999",
        "GNU.sparse.name": f"{TOP}/x",
    }
    unreadable = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "x"}
    cases: dict[str, tuple[tuple[str, bytes, dict[str, Any]], str]] = {
        **{
            path[:40]: ((path, b"x", {}), called)
            for path in (
                *("../x", f"{TOP}/../../x", "/tmp/x", "x", f"{TOP}/./x", f"{TOP}//x"),
                *(f"{TOP}/.driver", f"{TOP}/a\nb", f"{TOP}/a\\b", f"{TOP}/ü"),
                *(TOP + "/a" * 9, f"{TOP}/{'a' * 10**5}"),
            )
        },
        "another path": ((f"{TOP}/x", b"", {"pax_headers": {"path": "../../x"}}), called),
        "no text": (
            (f"{TOP}/x", b"", {"pax_headers": {"hdrcharset": "BINARY", "path": f"{TOP}/\udcff"}}),
            called,
        ),
        "a flag": (("-rf/x", b"x", {}), "holds 2 folders; an archive holds one campaign"),
        "a link": ((f"{TOP}/x", b"", link), plain),
        "a hard link": ((f"{TOP}/x", b"", hard), plain),
        "a pipe": ((f"{TOP}/x", b"", {"type": tarfile.FIFOTYPE}), plain),
        "a device": ((f"{TOP}/x", b"", {"type": tarfile.CHRTYPE}), plain),
        "no kind": ((f"{TOP}/x", b"", {"type": b"V"}), plain),
        "no map": ((f"{TOP}/x", b"", {"pax_headers": {"GNU.sparse.map": "x,y"}}), ""),
        "no size": ((f"{TOP}/x", b"", {"pax_headers": unreadable}), ""),
        "holes": ((f"{TOP}/x", b"", {"pax_headers": sparse}), plain),
        "twice": ((f"{TOP}/{HEADER}", b"{}", {}), f"holds {TOP}/{HEADER} twice"),
        "as folder": ((f"{TOP}/{HEADER}/x", b"x", {}), f"holds {TOP}/{HEADER} twice"),
        "unlisted": ((f"{TOP}/x", b"x", {}), unlisted),
        "negative": ((f"{TOP}/x", b"", {"pax_headers": {"size": "-1"}}), unlisted),
        "without end": ((f"{TOP}/x", b"", {"pax_headers": {"size": str(2**70)}}), damaged),
        "time inf": ((f"{TOP}/x", b"", {"pax_headers": {"mtime": "inf"}}), unlisted),
        "time nan": ((f"{TOP}/x", b"", {"pax_headers": {"mtime": "nan"}}), unlisted),
    }
    for name, ((path, content, fields), says) in cases.items():
        extra = entry(path, content, **fields)
        yield Wrong("entry", name, partial(tar, listed(good), extra), f".*{re.escape(says)}.*")
    below = listed(good) | {f"{HEADER}/x": b"x"}
    yield Wrong("entry", "below a file", partial(tar, below), f" holds {TOP}/{HEADER}.* twice.*")


def of_files(good: Files) -> Iterator[Wrong]:
    """Files that do not fit their sums, or none."""
    whole = listed(good)
    other = whole | {JSON: whole[JSON] + b" "}
    less = {name: data for name, data in whole.items() if name != JSON}
    yield Wrong(
        "file", "no sums", partial(tar, good), f".*{HEADER}, which its {SUMS} does not list"
    )
    yield Wrong("file", "changed", partial(tar, other), f".*{JSON} is not what its {SUMS} says.*")
    yield Wrong("file", "missing", partial(tar, less), f" lacks .*{JSON}, which its {SUMS} lists.*")
    strange = good | {SUMS: f"{'0' * 64}  \x1b]0;owned\x07{'x' * 1000}\n".encode()}
    says = f": its {SUMS} holds '0{{64}}  .x1b.{{1,30}}, which lists no campaign's file"
    yield Wrong("file", "strange sums", partial(tar, strange), says)
    says = ".*, which lists no campaign's file"
    yield Wrong("file", "sums of bytes", partial(tar, good | {SUMS: b"\xff\xfe\n"}), says)
    zeros = io.BytesIO()
    np.savez_compressed(zeros, c0=np.zeros((10**5, 2)))
    says = r": .*\.npz is packed, which no campaign's samples are"
    yield Wrong("file", "packed", partial(tar, listed(good | {NPZ: zeros.getvalue()})), says)
    yield Wrong("file", "nothing", partial(tar, {}), " holds 0 folders.*")


def of_compression(good: Files) -> Iterator[Wrong]:
    """What is no .xz file, a part of one, or unpacks without end."""
    whole = tar(listed(good))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**30}]
    damaged = " is damaged or no archive of a campaign .*"
    for name, content in {
        "empty": b"",
        "text": b"hello",
        "empty inside": lzma.compress(b""),
        "cut": whole[:-1000],
        "followed": whole + b"x",
        "large dictionary": lzma.compress(b"x", filters=filters),
        "changed": whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:],
    }.items():
        yield Wrong("compression", name, partial(bytes, content), damaged)
    yield Wrong("compression", "bomb", bomb, " unpacks to far more than a campaign of its size .*")


def of_text(good: Files) -> Iterator[Wrong]:
    """A file that is not JSON object, or one without end."""
    whole = good[HEADER].rstrip()
    for name, text in {
        "lists": b"[" * 10**5,
        "tables": whole[:-1] + b', "site": ' + b'{"a":' * 900 + b"1" + b"}" * 901,
        "digits": b'{"format": ' + b"9" * 5000 + b"}",
        "infinity": b'{"format": 2, "name": Infinity}',
        "list": b"[1]",
        "zeros": bytes(100),
        "bom": b"\xef\xbb\xbf" + whole,
        "utf-16": whole.decode().encode("utf-16"),
        "cut": whole[:100],
    }.items():
        content = partial(tar, listed(good | {HEADER: text}))
        yield Wrong("text", name, content, rf"/{TOP}/{HEADER} cannot be read \(.+\); get .*")


def of_fields(good: Files) -> Iterator[Wrong]:
    """One field of another type or range."""
    cell: Field = ("cells", 0)
    lists, texts = ([], "x", 5, None), (None, [1], "", "../../x", "\n")
    of_launch: dict[Field, tuple[Any, ...]] = {
        **{("launch", name): texts for name in ("arm", "environment", "mpi")},
        ("launch", "block"): ("a", -1, 1.5, 10**30, True),
        ("launch", "ranks"): ("a", 0, 10**18),
        ("launch", "measurement"): ([],),
        ("launch",): lists,
        ("cells",): ({"a": 1}, [1], None),
        ("environment",): lists,
        ("company",): (5, "x"),
        ("command",): ([1, {}],),
        ("format",): (10**30,),
        (*cell, "bytes"): ("1", -5, [1], math.nan, 10**30),
        (*cell, "operation"): (["a"], None),
        (*cell, "warmup"): (-1, "a"),
        (*cell, "turn"): (-1, "a"),
        (*cell, "group"): (0,),
        (*cell, "samples"): (5, "../../x"),
    }
    of_header: dict[Field, tuple[Any, ...]] = {
        ("name",): ([1], "../../x"),
        **{(name,): ([1], "x") for name in ("machine", "emulated", "containers", "variables")},
        ("missing",): ("abc", 5),
        ("schedule",): (5, ["a"]),
        ("seed",): ("a", -1),
        ("command",): (5,),
        ("engines",): (5,),
        ("git",): ([1],),
        ("began",): (5,),
        ("experiment",): (None, []),
        ("experiment", "launches", "ranks"): ([10**30], [0]),
        ("experiment", "launches", "blocks"): (10**9,),
        ("experiment", "launches", "environments"): (["hosts:999999x1gbit"],),
        ("experiment", "factors", "sizes"): (list(range(10**4)),),
    }
    for file, fields in ((JSON, of_launch), (HEADER, of_header)):
        for path, values in fields.items():
            for value in values:
                changed = json.loads(good[file])
                put(changed, path, value)
                content = partial(tar, listed(good | {file: json.dumps(changed).encode()}))
                field = "".join(f"[{key}]" if type(key) is int else f".{key}" for key in path)
                says = rf"/{TOP}/{file}.*[ (]{re.escape(field[1:])}\b.* (holds|cannot be)\b.*"
                yield Wrong("field", f"{file} {field[1:]} {str(value)[:20]!r}", content, says)
    for path, value, fault in (
        (("company",), ["0000-nobody"], "company lacks the launch itself"),
        (("format",), True, "names no format"),
        (("cells",), [], "holds no cells"),
        (("launch", "ranks"), 5, r"cells\[0\] has 2 columns of samples, and not 5"),
        ((*cell, "warmup"), 10**9, r"cells\[0\] has \d+ rows of samples"),
        ((*cell, "turn"), 7, r"cells\[0\] has \d+ rows of samples"),
        ((*cell, "samples"), "c9", r"cells\[0\]\.samples names 'c9'"),
    ):
        changed = json.loads(good[JSON])
        put(changed, path, value)
        content = partial(tar, listed(good | {JSON: json.dumps(changed).encode()}))
        yield Wrong("fields", f"{path} {value}", content, rf"/{TOP}/{JSON} .*{fault}.*")


def of_arrays(good: Files, folder: Path) -> Iterator[Wrong]:
    """Samples that are none, or run code where they are unpickled or evaluated."""
    key = json.loads(good[JSON])["cells"][0]["samples"]
    arrays = dict(np.load(io.BytesIO(good[NPZ])))
    times = arrays[key]
    rest = {f"{name}.npy": data for name, data in unzipped(good[NPZ]).items() if name != key}
    named = rf"/{TOP}/launches/.*"
    makes: dict[str, Callable[[], Any]] = {
        "structured": lambda: np.zeros(times.shape, [("a", "f8")]),
        "texts": lambda: np.full(times.shape, "a"),
        "complex": lambda: times.astype(complex),
        "integers": lambda: np.ones(times.shape, np.int64),
        "nan": lambda: times * np.nan,
        "inf": lambda: times + np.inf,
        "negative": lambda: -times,
        "zero": lambda: times * 0,
        "tiny": lambda: times * 0 + 5e-324,
        "flat": lambda: times[:, 0],
        "no rows": lambda: times[:0],
        "no ranks": lambda: times[:, :0],
        "scalar": lambda: np.float64(1),
    }
    headers = {
        "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n",
        "code": "{'descr': __import__('os').getpid(), 'fortran_order': False, 'shape': (1,), }\n",
        "huge": "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 9999), }\n",
        "below zero": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 4), }\n",
        "brackets": "(" * 3000 + "\n",
    }
    contents = {name: packed(**arrays | {key: make()}) for name, make in makes.items()}
    for name, header in headers.items():
        start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
        contents[name] = zipped(rest | {f"{key}.npy": start + header.encode() + b"cos\nsystem\n."})
    contents["missing"] = zipped(rest)
    contents["no zip"] = b"hello"
    for name, content in contents.items():
        (folder / JSON).write_bytes(good[JSON])
        change_samples(folder, content)
        files = good | {NPZ: content, JSON: (folder / JSON).read_bytes()}
        yield Wrong("array", name, partial(tar, listed(files)), named)


def unzipped(content: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(content)) as held:
        return {name.removesuffix(".npy"): held.read(name) for name in held.namelist()}


def zipped(members: Files) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as made:
        for name, data in members.items():
            made.writestr(name, data)
    return held.getvalue()


def right_and_wrong() -> tuple[bytes, list[Wrong]]:
    """The archive that none of the others is, and all others."""
    with campaign() as folder:
        good = {str(path.relative_to(folder)): path.read_bytes() for path in files_of(folder)}
        wrong = [
            *of_entries(good),
            *of_files(good),
            *of_compression(good),
            *of_text(good),
            *of_fields(good),
            *of_arrays(good, folder),
        ]
    return tar(listed(good)), wrong


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
