"""The table of a device's owners, at its beginning, of which every rank of a job takes a line.

Each container has its own file for the device, so a file lock cannot keep two jobs apart; they have
only the memory in common. A line has a word that the kernel clears when its owner dies
(`_native/claim.c`). This protects programs that use hbmcomm, in and out of containers, under one
running kernel. It does not detect a program that maps the device by itself, another kernel on the
same memory (a second virtual machine), and a child of a fork that outlives its rank.
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
from hbmcomm.memory import procfs

TABLE_BYTES = 2 * 2**20
"""The first step of a device."""
LINES = 1024
"""Transport direct serves as many ranks on a node."""
TOKEN_BYTES = 16
"""The first bytes of a device: by them the ranks of a job see that they have the same one."""

_FIRST, _LINE_BYTES, _WORD_BYTES = 4096, 256, 8
_ffi: Any = _core.ffi
_lib: Any = _core.lib


class OwnedLine:
    """A line that this process owns, until it gives it back or dies."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def give_back(self) -> None:
        """Let others take the line; the table must still be mapped."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _lib.hbm_release_claim(handle)


def word_address(table: int, line: int) -> int:
    """The address of a line's word, from the address of the table."""
    return table + _FIRST + line * _LINE_BYTES


def take(table: int, line: int) -> OwnedLine | None:
    """Take a line; None where a living process owns it.

    Raises:
        OSError: The kernel refuses a thread, or a claim on the word.
    """
    handle = _lib.hbm_acquire_claim(word_address(table, line), _boot())
    if handle == _ffi.NULL:
        if _ffi.errno == errno.EBUSY:
            return None
        raise OSError(_ffi.errno, f"a claim on the device: {os.strerror(_ffi.errno)}")
    text = _self().encode("ascii", "replace")[: _LINE_BYTES - _WORD_BYTES - 1]
    write(word_address(table, line) + _WORD_BYTES, text.ljust(_LINE_BYTES - _WORD_BYTES, b"\0"))
    return OwnedLine(handle)


def owners(table: int) -> dict[int, str]:
    """{line: its owner's description of itself} of all lines that living processes own."""
    boot = _boot()
    taken = (line for line in range(LINES) if _lib.hbm_is_claimed(word_address(table, line), boot))
    return {line: _owner(table, line) for line in taken}


def write_token(table: int, token: bytes) -> None:
    """Write a job's token; the owner of line 0 does it."""
    write(table, token)


def read_token(table: int) -> bytes:
    """The token of the last job."""
    return ctypes.string_at(table, TOKEN_BYTES)


def _boot() -> int:
    return procfs.boot(Path("/proc"))


def _owner(table: int, line: int) -> str:
    text = ctypes.string_at(word_address(table, line) + _WORD_BYTES, _LINE_BYTES - _WORD_BYTES)
    words = text.partition(b"\0")[0].decode("ascii", "replace")
    # Before its owner has written, the line has arbitrary bytes, which no message may show.
    return words if re.fullmatch(r"process \d+ [ -~]+", words) else "a process that just began"


def _self() -> str:
    program = Path(sys.argv[0] if sys.argv and sys.argv[0] else sys.executable).name
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    process = f"process {os.getpid()} ({program}, user {os.getuid()})"
    return f"{process} on {socket.gethostname()} since {since}"


def write(address: int, data: bytes) -> None:
    ctypes.memmove(address, data, len(data))
