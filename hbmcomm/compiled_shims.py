"""The C++ parts of hbmcomm.torch that this installation holds compiled, and which one fits.

Published wheels hold one for each minor version of torch, within which torch keeps its C++
interface; none depends on Python's version. What makes wheels runs this file by itself, without
torch.
"""

from __future__ import annotations

import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

SOURCES = Path(__file__).parent / "torch/shim"
NATIVE = Path(__file__).parent / "_native"
COMPILED = Path(__file__).parent / "torch/compiled"
"""The folder of the compiled ones; a checkout and the source distribution have none."""
FLAGS = ["-O2", "-fvisibility=hidden", "-Wall", "-DPYBIND11_SIMPLE_GIL_MANAGEMENT"]
RELEASE = re.compile(r"(\d+\.\d+)\.\d+(\+(cpu|xpu|cu\d+|rocm[\d.]+))?")
"""Of torch's own builds of releases; others may change the C++ interface."""


def digest(about: Iterable[object]) -> str:
    """A hash of the sources, of the interface of the C core, and of the arguments."""
    inputs = hashlib.sha256()
    for path in (*sorted(SOURCES.rglob("*.*")), NATIVE / "interface.h"):
        inputs.update(path.read_bytes())
    inputs.update(repr((*about, *FLAGS)).encode())
    return inputs.hexdigest()[:16]


def file_name(minor: str, machine: str) -> str:
    """The name of the compiled part of these sources; other sources have another name."""
    return f"torch{minor}-{machine}-{digest((minor, machine))}.so"


def fitting(version: str, machine: str, has_cxx11_abi: bool) -> Path | None:
    """The compiled part for torch here; None: it is to be built.

    Args:
        version: torch's whole version.
        machine: As platform.machine() names it.
        has_cxx11_abi: Whether torch was compiled with libstdc++'s ABI of C++11.
    """
    release = RELEASE.fullmatch(version)
    is_usual = sys.implementation.name == "cpython" and not sysconfig.get_config_var(
        "Py_GIL_DISABLED"
    )
    if release is None or not is_usual or not has_cxx11_abi:
        return None
    path = COMPILED / file_name(release[1], machine)
    return path if path.is_file() else None


def minors(machine: str) -> list[str]:
    """The minor versions of torch that this installation has a compiled part for."""
    names = [path.name for path in COMPILED.glob(f"torch*-{machine}-*.so")]
    versions = [name.removeprefix("torch").partition("-")[0] for name in names]
    return sorted(versions, key=lambda minor: [int(number) for number in minor.split(".")])
