"""Memory without a tensor is in the kind too, and may be freed outside; see raw_allocation.cpp.

Usage: raw.py LIBRARY, as one process, with MEMKIND_HBW_NODES=0.
"""

import ctypes
import gc
import sys

import torch

import hbmcomm.torch

library = ctypes.CDLL(sys.argv[1])
library.allocate.restype, library.allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.deallocate.argtypes = [ctypes.c_void_p]


def kind_at(address: int) -> str | None:
    """The kind of memory at an address, whether it is still allocated or not."""
    byte = torch.frombuffer((ctypes.c_ubyte * 1).from_address(address), dtype=torch.uint8)
    return hbmcomm.torch.kind_of(byte)


for nbytes, kind in ((2**20, "hbw"), (100, None)):  # small memory is torch's own
    outside = library.allocate(nbytes)
    with hbmcomm.torch.memory("hbw"):
        inside = library.allocate(nbytes)
        assert inside and kind_at(inside) == kind, "torch's assertion failed"
        library.deallocate(outside)
        outside = library.allocate(nbytes)
    ctypes.memset(inside, 1, nbytes)
    library.deallocate(inside)
    gc.collect()
    assert kind_at(inside) is None and kind_at(outside) == kind, "a block is left, or is gone"
    library.deallocate(outside)
    assert kind_at(outside) is None
print("right")
