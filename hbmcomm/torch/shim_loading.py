"""The C++ part of this process, connected to the C core that the library has loaded."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import distributed

from hbmcomm.ending import at_end
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
def shim() -> Any:
    """The C++ part's operators, torch.ops.hbmcomm_shim; built first where that has not been done.

    Raises:
        BuildFailed: It cannot be built here.
    """
    build.load()
    operators = torch.ops.hbmcomm_shim
    addresses = {name: address(ffi.addressof(lib, name)) for name in _FUNCTIONS}
    operators.use_core(addresses | {"hbm_interrupted": address(lib.hbm_interrupted)})
    operators.quicken(id(torch.ops.hbmcomm))
    at_end(operators.abort_groups)  # their workers must not need Python once it has ended
    return operators


def address(pointer: Any) -> int:
    """The address in a pointer of cffi."""
    return int(ffi.cast("uintptr_t", pointer))


def boxed(backend: distributed.Backend) -> Any:
    """A backend as the operators take it: in a process group, which torch has boxes for."""
    holder = distributed.ProcessGroup(backend.rank(), backend.size())
    holder._register_backend(torch.device("cpu"), holder.BackendType.CUSTOM, backend)
    return holder.boxed()
