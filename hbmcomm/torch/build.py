"""Loads the C++ part for the torch that is installed; builds it once where no compiled one fits.

Builds are kept in torch's own folder for extensions (TORCH_EXTENSIONS_DIR), one for each version of
torch, Python and of the sources, since no binary works with two versions of torch.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import torch

from hbmcomm import compiled_shims
from hbmcomm.compiled_shims import FLAGS, NATIVE, SOURCES
from hbmcomm.errors import HbmcommError

_OLDEST = (2, 10)
_COMPLETE = "complete"
"""A file beside a build that is complete."""
_MODE, _OTHERS = 0o755, 0o022
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600
"""The lock's mode: another user who can open it can hold it."""
QUIET, PATIENCE, POLL = 2.0, 1800.0, 0.05
"""Seconds of waiting for another process's build until a line says so, until it fails, and between
two looks."""
OVERFLOW = Path("/proc/sys/kernel/overflowuid")
"""The user that a namespace shows for those that it does not map: root, of an image's files."""
MAPPED = Path("/proc/self/uid_map")
"""The users of this namespace, in lines of the first one, its number outside and their count."""


class BuildFailed(HbmcommError):
    """The C++ part cannot be built here."""


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def load() -> None:
    """Load the C++ part, which adds operators to torch; built first where that has not been done.

    Raises:
        BuildFailed: There is no compiler, or it failed.
    """
    compiled = _fitting()
    if compiled is not None:
        try:
            torch.ops.load_library(compiled)
            return
        except OSError as error:  # it lacks a function: of another torch than its version says
            _say(f"hbmcomm.torch: its compiled C++ part does not fit this torch ({error})")
    torch.ops.load_library(_built(_say))


def build(report: Callable[[str], object] = _say) -> Path:
    """Build the C++ part where that has not been done, and no compiled one fits; the file.

    Of several processes one builds, and the others wait for it.

    Raises:
        BuildFailed: There is no compiler, it failed, or another process builds for too long.
    """
    return _fitting() or _built(report)


def _fitting() -> Path | None:
    has_cxx11_abi = torch.compiled_with_cxx11_abi()
    return compiled_shims.fitting(torch.__version__, platform.machine(), has_cxx11_abi)


def _built(report: Callable[[str], object]) -> Path:
    folder = folder_of_build()
    library = folder / f"{folder.name}.so"
    try:
        folder.mkdir(_MODE, parents=True, exist_ok=True)
        refuse_others(folder)
        if (folder / _COMPLETE).exists():
            return library
        lock = os.open(folder / "building", _LOCK, _PRIVATE)
    except OSError as error:
        raise BuildFailed(
            f"hbmcomm.torch: its C++ part cannot be kept in {folder} ({error}); set "
            "TORCH_EXTENSIONS_DIR to a folder that can be written to"
        ) from error
    with os.fdopen(lock, "w"):
        if os.fstat(lock).st_uid == os.geteuid():
            os.fchmod(lock, _PRIVATE)  # an older version left it readable
        _wait(lock, folder / "building", report)
        if not (folder / _COMPLETE).exists():
            _check_tools()
            report(
                f"hbmcomm.torch: building its C++ part for torch {torch.__version__} "
                "(about a minute, once)"
            )
            compile_shim(folder)
            (folder / _COMPLETE).touch()
    return library


def _wait(lock: int, path: Path, report: Callable[[str], object]) -> None:
    """Wait until no other process builds."""
    began, reported = time.monotonic(), False
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        waited = time.monotonic() - began
        if waited > PATIENCE:
            raise BuildFailed(
                f"hbmcomm.torch: another process has held {path} for {waited / 60:.0f} minutes; "
                f"see which (fuser -v {path}), end it if it hangs, and try again"
            )
        if waited > QUIET and not reported:
            report(
                f"hbmcomm.torch: waiting for a process that builds its C++ part: it holds {path}"
            )
            reported = True
        time.sleep(POLL)


def refuse_others(folder: Path) -> None:
    """Refuse a build that an ordinary user other than this one could have made: it is code."""
    state = folder.stat()
    if state.st_uid not in _trusted() or state.st_mode & _OTHERS:
        raise BuildFailed(
            f"hbmcomm.torch: another user than {os.geteuid()} can write into {folder}, which holds "
            "its C++ part: remove it, or set TORCH_EXTENSIONS_DIR to a folder of your own"
        )


def _trusted() -> set[int]:
    """Owners of code that is run: this user, root, and the overflow user where nobody can be it.

    Outside a user namespace that is an ordinary user, nobody, which services run as.
    """
    overflow = int(OVERFLOW.read_text())
    ranges = [[int(word) for word in line.split()] for line in MAPPED.read_text().splitlines()]
    is_user = any(first <= overflow < first + count for first, _, count in ranges)
    return {os.geteuid(), 0} | (set() if is_user else {overflow})


def compile_shim(folder: Path) -> None:
    from torch.utils import cpp_extension  # takes a second, and is not needed once it is built

    (folder / "lock").unlink(missing_ok=True)  # of a build that was killed; ours is the flock
    whole = folder / "whole.cpp"  # torch's headers take most of the time: they are read once
    whole.write_text("".join(f'#include "{path}"\n' for path in sorted(SOURCES.rglob("*.cpp"))))
    before = os.environ["PATH"]
    os.environ["PATH"] = _tools_path()  # torch starts ninja by its name
    try:
        cpp_extension.load(
            folder.name,
            [str(whole)],
            extra_cflags=FLAGS,
            extra_include_paths=[str(SOURCES), str(NATIVE)],
            build_directory=str(folder),
            is_python_module=False,
        )
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        raise BuildFailed(
            f"hbmcomm.torch: its C++ part cannot be built for torch {torch.__version__}: {error}"
        ) from error
    finally:
        os.environ["PATH"] = before


def _tools_path() -> str:
    """PATH with the folder of this Python first, where pip puts ninja."""
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def _check_tools() -> None:
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < _OLDEST:
        raise BuildFailed(
            f"hbmcomm.torch: the backend needs torch {_OLDEST[0]}.{_OLDEST[1]} or newer, with "
            f"backends that can allocate tensors; found {torch.__version__}: pip install -U torch"
        )
    compiler = os.environ.get("CXX", "c++").split()[0]
    for tool, remedy in ((compiler, "apt install g++, or set CXX"), ("ninja", "pip install ninja")):
        if shutil.which(tool, path=_tools_path()) is None:
            minors = ", ".join(compiled_shims.minors(platform.machine())) or "none"
            raise BuildFailed(
                f"hbmcomm.torch: its C++ part for torch {torch.__version__} is built at the first "
                f"use, which needs {tool}; none was found: {remedy} (this installation has it "
                f"compiled for torch: {minors})"
            )


def folder_of_build() -> Path:
    """Where the build for this torch and Python is kept."""
    about = (torch.__version__, sysconfig.get_config_var("SOABI"), platform.machine())
    root = os.environ.get("TORCH_EXTENSIONS_DIR") or str(Path.home() / ".cache/torch_extensions")
    return Path(root) / f"hbmcomm_{compiled_shims.digest(about)}"
