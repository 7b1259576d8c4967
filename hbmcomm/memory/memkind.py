"""The binding of libmemkind, opened at run time: its calls and its errors.

Only this module opens it. memkind looks for HBM at its first call and caches the result, so set
MEMKIND_HBW_NODES and pin to CPUs before.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from hbmcomm._native import _libraries
from hbmcomm.errors import HbmcommError

SONAME = "libmemkind.so.0"
INSTALL = "install it with apt-get install libmemkind0 (dnf install memkind)"
NUMPY_FUNCTIONS = ("memkind_malloc", "memkind_calloc", "memkind_realloc", "memkind_free")
"""The functions with the signatures of NumPy's allocator, where the kind is the context."""

_ffi: Any = _libraries.ffi
_MESSAGE_SIZE = 128  # MEMKIND_ERROR_MESSAGE_SIZE


class MemkindError(HbmcommError):
    """memkind is missing, or refused; then the message is memkind's."""


def memkind_version() -> str | None:
    """The version of the installed libmemkind, such as "1.14.0"; None where there is none."""
    try:
        number = int(_library().memkind_get_version())
    except MemkindError:
        return None
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"


def allocate(kind: str, nbytes: int, alignment: int) -> int:
    """The address of `nbytes` of a kind, from memkind's heap for it. MemkindError where refused.

    The contents are arbitrary. A heap may return pages that it mapped for another thread, so check
    their policy with the kernel.
    """
    handle = _kind(kind)
    check_error(_library().memkind_check_available(handle), f"kind {kind}")
    address = _ffi.new("void **")
    status = _library().memkind_posix_memalign(handle, address, alignment, nbytes)
    check_error(status, f"{nbytes} bytes of kind {kind}")
    return int(_ffi.cast("uintptr_t", address[0]))


def free(kind: str, address: int) -> None:
    """Return a block to the heap of its kind."""
    _library().memkind_free(_kind(kind), _ffi.cast("void *", address))


def kind_address(kind: str) -> int:
    """The kind's handle as an integer, for callers in C. MemkindError without memkind."""
    return int(_ffi.cast("uintptr_t", _kind(kind)))


def has_kind(name: str) -> bool:
    """Whether memkind has a kind of this name. MemkindError without memkind."""
    return hasattr(_library(), f"MEMKIND_{name.upper()}")


def new_kind(address: int, nbytes: int) -> int:
    """The handle of a new kind that allocates in a range of this process's memory alone.

    It exists as long as the process. Freed memory serves its later allocations; the system does not
    get it back.

    Raises:
        MemkindError: memkind is missing, or refuses.
    """
    handle = _ffi.new("memkind_t *")
    status = _library().memkind_create_fixed(_ffi.cast("void *", address), nbytes, handle)
    check_error(status, f"a kind of {nbytes:,} bytes")
    return int(_ffi.cast("uintptr_t", handle[0]))


def function_address(name: str) -> int:
    """The address of one of `NUMPY_FUNCTIONS`. MemkindError without memkind."""
    return int(_ffi.cast("uintptr_t", _ffi.addressof(_library(), name)))


def check_error(status: int, asked: str) -> None:
    """Raise MemkindError for a status of memkind that is not 0."""
    if status == 0:
        return
    text = _ffi.new("char[]", _MESSAGE_SIZE)
    _library().memkind_error_message(status, text, _MESSAGE_SIZE)
    message = _ffi.string(text).decode()
    raise MemkindError(f"memkind, asked for {asked}: {message} ({status})")


@lru_cache(maxsize=1)
def _has_numa() -> bool:
    """What memkind asks at its first allocation; where it is refused, it ends the process."""
    try:
        return int(_library().numa_available()) >= 0
    except AttributeError:  # a memkind that holds libnuma itself
        return True


@lru_cache(maxsize=1)
def _library() -> Any:
    # It stays for ever: NumPy may free arrays through it after this module's end.
    try:
        return _ffi.dlopen(SONAME, os.RTLD_NOW | os.RTLD_NODELETE)
    except OSError:
        raise MemkindError(f"{SONAME} is not installed; {INSTALL}") from None


def _kind(kind: str) -> Any:
    if not _has_numa():
        raise MemkindError(
            "memkind needs a kernel with NUMA policies, and this one has no get_mempolicy "
            "(CONFIG_NUMA)"
        )
    try:
        return getattr(_library(), f"MEMKIND_{kind.upper()}")
    except AttributeError:
        raise MemkindError(f"memkind {memkind_version()} has no kind {kind}") from None
