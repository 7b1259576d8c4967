"""The C++ part of this process, connected to the C core that the library has loaded."""

from __future__ import annotations

import atexit
from functools import cache
from types import ModuleType
from typing import Any

import torch

from hbmcomm.torch import build
from hbmcomm.transports.native import ffi, lib

_FUNCTIONS = (
    "hbm_run",
    "hbm_open_hosts",
    "hbm_close",
    "hbm_free",
    "hbm_dtype_size",
    "hbm_awaited",
    "hbm_reduces",
    "hbm_heap_array",
    "hbm_heap_free",
    "hbm_on_wait",
    "hbm_set_beside",
)


@cache
def shim() -> ModuleType:
    """The C++ part, built first where that has not been done.

    Raises:
        BuildFailed: It cannot be built here.
    """
    module = build.load()
    addresses = {name: address(ffi.addressof(lib, name)) for name in _FUNCTIONS}
    module.use_core(addresses | {"hbm_interrupted": address(lib.hbm_interrupted)})
    module.quicken(torch.ops.hbmcomm)
    atexit.register(module.abort_groups)  # their workers must not need Python once it has ended
    return module


def address(pointer: Any) -> int:
    """The address in a pointer of cffi."""
    return int(ffi.cast("uintptr_t", pointer))
