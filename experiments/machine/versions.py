"""Versions and file hashes of everything that both arms of a comparison must share."""

import hashlib
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
from mpi4py import MPI

import experiments
import hbmcomm
from experiments.machine.facts import read
from experiments.processes.files import of_python


def versions() -> dict[str, str]:
    """Versions of everything that both arms of a comparison must share."""
    library = MPI.Get_library_version().strip("\0").splitlines()[0]
    torch = {"torch": metadata.version("torch")} if "torch" in sys.modules else {}
    return torch | {
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
        "numpy": np.__version__,
        "mpi4py": metadata.version("mpi4py"),
        "cffi": metadata.version("cffi"),
        "hbmcomm": _installed("hbmcomm"),
        "mpi": re.split(r",? (?:package|ident|repo)", library)[0].strip(),
        "memkind": hbmcomm.memkind_version() or "not installed",
    }


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # found in the checkout, by PYTHONPATH
        return "not installed"


def hashes() -> dict[str, str]:
    """First 16 hex digits of SHA-256 of the code that both arms must share."""
    digests = {
        "hbmcomm": of_python(Path(hbmcomm.__file__).parent),
        "experiments": of_python(Path(experiments.__file__).parent),
    }
    patterns = {
        "numpy": "_multiarray_umath",
        "core": f"{Path(hbmcomm.__file__).resolve().parent}/_native/_core.",  # there may be copies
        "libmpi": "/libmpi",
        "mpi4py": "/MPI.",
    }
    for name, pattern in patterns.items():
        if loaded := [path for path in _mapped() if pattern in path]:
            digests[name] = _digest(Path(min(loaded)))
    return digests


def _mapped() -> set[str]:
    """Paths of the files mapped into this process."""
    lines = (line.split(None, 5) for line in read(Path("/proc/self/maps")).splitlines())
    return {words[5] for words in lines if len(words) == 6}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError:
        return "not found"
