"""Who uses a device: a table at its beginning, of which every rank of a job claims a line.

In each container a file of its own stands for the device, so that no file lock keeps two jobs
apart; the memory is what all have in common. A claim is a word there that the kernel takes back
when the process dies (`_native/claim.c`). It holds among programs that use hbmcomm, in and out of
containers, while one system runs. Not seen are: a program that maps the device by itself, another
system on the same memory (a second virtual machine), and a child of a fork that outlives its rank.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import socket
import sys
import time
from pathlib import Path
from typing import Any

from hbmcomm._native import _core  # type: ignore[attr-defined]
from hbmcomm.memory.topology import procfs

TABLE_BYTES = 2 * 2**20
"""The first step of a device."""
LINES = 1024
"""As many as ranks that transport direct serves on a node."""
TOKEN_BYTES = 16
"""At the very beginning: what the ranks of one job know each other's device by."""

_FIRST, _LINE_BYTES, _WORD_BYTES = 4096, 256, 8
_ffi: Any = _core.ffi
_lib: Any = _core.lib


class Claim:
    """A line that this process has, until it gives it back or dies."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def give_back(self) -> None:
        """Let others have the line; the table must still be mapped."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _lib.hbm_give(handle)


def boot() -> int:
    """A number of this boot of the system, the same in every container; never 0."""
    return procfs.boot(Path("/proc"))


def place(table: int, line: int) -> int:
    """The address of a line's word, given where the table is mapped."""
    return table + _FIRST + line * _LINE_BYTES


def take(table: int, line: int) -> Claim | None:
    """A claim on a line; None where someone alive has it.

    Raises:
        OSError: The system has no thread to spare, or no such claims.
    """
    handle = _lib.hbm_take(place(table, line), boot())
    if handle == _ffi.NULL:
        if _ffi.errno == errno.EBUSY:
            return None
        raise OSError(_ffi.errno, f"a claim on the device: {os.strerror(_ffi.errno)}")
    text = _self().encode("ascii", "replace")[: _LINE_BYTES - _WORD_BYTES - 1]
    _write(place(table, line) + _WORD_BYTES, text.ljust(_LINE_BYTES - _WORD_BYTES, b"\0"))
    return Claim(handle)


def owners(table: int) -> dict[int, str]:
    """{line: who has it, in its own words} of all lines that someone alive has."""
    number = boot()
    taken = (line for line in range(LINES) if _lib.hbm_is_taken(place(table, line), number))
    return {line: _owner(table, line) for line in taken}


def write_token(table: int, token: bytes) -> None:
    """Leave a job's token; for the one who has line 0."""
    _write(table, token)


def read_token(table: int) -> bytes:
    """What was left there last."""
    return ctypes.string_at(table, TOKEN_BYTES)


def _owner(table: int, line: int) -> str:
    text = ctypes.string_at(place(table, line) + _WORD_BYTES, _LINE_BYTES - _WORD_BYTES)
    words = text.partition(b"\0")[0].decode("ascii", "replace")
    # Before its owner has written, anything may stand there, none of which is anyone's business.
    return words if re.fullmatch(r"process \d+ [ -~]+", words) else "a process that just began"


def _self() -> str:
    program = Path(sys.argv[0] if sys.argv and sys.argv[0] else sys.executable).name
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    who = f"process {os.getpid()} ({program}, user {os.getuid()}) on {socket.gethostname()}"
    return f"{who} since {since}"


def _write(address: int, data: bytes) -> None:
    ctypes.memmove(address, data, len(data))
