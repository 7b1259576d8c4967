"""What processes have, seen from outside: their C library, MPI, Python and BLAS, the variables that
these read, and memory.
"""

import contextlib
import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path

from experiments.model import plain_file

SUBJECTS = {
    "C library": re.compile(r"/(libc\.so(\.6)?|libc-[\d.]+\.so|ld-musl-[^/]*)$"),
    "MPI": re.compile(r"/(libmpi(ch|_abi)?\.so[\d.]*)$"),
    "Python": re.compile(r"/(python3[\d.]*|libpython3[\d.]*so[\d.]*)$"),
    "BLAS": re.compile(r"/(lib(openblas|scipy_openblas|mkl_rt|blis|blas|flexiblas|atlas)[^/]*)$"),
}
VERSIONS = (
    re.compile(rb"GNU C Library \([^)\0]{1,80}\) [^\0\n]{0,40}version ([\d.]+\d)"),
    re.compile(rb"OpenBLAS ([\d.]+\d)"),
    re.compile(rb"Open MPI v([\d.]+\d)"),
    re.compile(rb"MPICH Version:\s*([\d.]+\d)"),
    re.compile(rb"Intel\(R\) MPI Library ([\d.]+\d)"),
)
MOST = 128 * 2**20  # bytes of a library that are searched for its version
TUNING = re.compile(
    r"(OMP|MKL|OPENBLAS|BLIS|NUMEXPR)_NUM_THREADS|(OMP|KMP|GOMP|UCX|MALLOC|I_MPI|MPICH|OMPI_MCA)_\w+"
    r"|GLIBC_TUNABLES"
)
"""Variables that change how fast a program is."""


def loaded(pids: Iterable[int]) -> dict[str, str]:
    """The libraries of SUBJECTS that processes have mapped, with a version where they have one.

    What this user may not read is left out.
    """
    libraries: dict[str, str] = {}
    for pid in pids:
        for path in mapped_code(pid):
            for subject, pattern in SUBJECTS.items():
                if subject not in libraries and (name := pattern.search(path)):
                    version = _version(_seen_by(pid, path))
                    libraries[subject] = f"{name[1]} {version}".strip()
    return libraries


def _seen_by(pid: int, path: str) -> Path:
    """A file that a process has mapped, by a path that this process can open.

    Of a process with another root folder, the kernel names its files from here or from there.
    """
    with contextlib.suppress(OSError):
        root = str(Path(f"/proc/{pid}/root").readlink())
        path = path.removeprefix(root) if root != "/" else path
    return Path(f"/proc/{pid}/root{path}")


def mapped_code(pid: int) -> list[str]:
    """The files from which a process has mapped code."""
    text = ""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    return code_in(text)


def code_in(maps: str) -> list[str]:
    """The files among mappings that may be executed and are still there.

    Args:
        maps: of a process, as proc_pid_maps(5) has them.
    """
    paths = re.findall(r"^\S+ ..x\S* \S+ \S+ \d+ +(/.*)$", maps, re.MULTILINE)
    return [path for path in dict.fromkeys(paths) if not path.endswith(" (deleted)")]


def variables(pids: Iterable[int]) -> dict[str, str]:
    """The variables of TUNING that processes began with; of several values the last."""
    values: dict[str, str] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                name, _, value = entry.decode("utf-8", "replace").partition("=")
                if TUNING.fullmatch(name):
                    values[name] = value[:200]
    return values


def resident(pids: Iterable[int]) -> int:
    """Bytes of memory that processes hold, without those that they share."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            _, pages, shared = Path(f"/proc/{pid}/statm").read_text().split()[:3]
            total += (int(pages) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return total


def has_large_counts(pid: int, mpi: str) -> bool:
    """Whether the MPI of a process has MPI 4's calls with counts of 64 bits.

    Args:
        mpi: the path of its library, as the process sees it.
    """
    with contextlib.suppress(OSError, ValueError):
        data = plain_file.read(Path(f"/proc/{pid}/root{mpi}"), MOST, follow=True)
        return b"\0PMPI_Allreduce_c\0" in data
    return False


def _version(path: Path) -> str:
    with contextlib.suppress(OSError):
        file = path.stat()
        return _version_in(path, file.st_dev, file.st_ino, file.st_mtime_ns)
    return ""


@functools.lru_cache(64)
def _version_in(path: Path, *file: int) -> str:
    """Of a file by its identity, since the same one is asked for again and again."""
    with contextlib.suppress(OSError, ValueError):
        data = plain_file.read(path, MOST, follow=True)
        for pattern in VERSIONS:
            if match := pattern.search(data):
                return match[1].decode()
    return ""
