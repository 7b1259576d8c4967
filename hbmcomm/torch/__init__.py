"""A backend of torch.distributed: importing this module registers it as "hbm".

    import hbmcomm.torch
    torch.distributed.init_process_group("hbm")

The first import for a version of torch builds a small C++ library, which takes about a minute.
"""

from torch import distributed

from hbmcomm.torch.group import create
from hbmcomm.torch.memory import empty, handle, is_in_arena, kind_of, memory

__all__ = ["empty", "handle", "is_in_arena", "kind_of", "memory"]

distributed.Backend.register_backend("hbm", create, extended_api=True, devices=["cpu"])
