"""Memory without a tensor is in the kind too, and may be freed outside; see raw_allocation.cpp.

Usage: raw.py LIBRARY, as one process, with MEMKIND_HBW_NODES=0.
"""

import ctypes
import gc
import sys

import torch  # noqa: F401 (the library needs torch's, which this loads)

import hbmcomm.torch
from hbmcomm.torch.memory import _blocks

library = ctypes.CDLL(sys.argv[1])
library.allocate.restype, library.allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.deallocate.argtypes = [ctypes.c_void_p]
for nbytes, blocks in ((2**20, 1), (100, 0)):  # small memory is torch's own
    outside = library.allocate(nbytes)
    with hbmcomm.torch.memory("hbw"):
        inside = library.allocate(nbytes)
        assert inside and len(_blocks) == blocks, "torch's assertion failed"
        library.deallocate(outside)
        outside = library.allocate(nbytes)
    ctypes.memset(inside, 1, nbytes)
    library.deallocate(inside)
    gc.collect()
    assert len(_blocks) == blocks, "the block of outside is left"
    library.deallocate(outside)
    assert not _blocks
print("right")
