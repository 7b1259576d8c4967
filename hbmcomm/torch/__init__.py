"""A backend of torch.distributed: importing this module registers it as "hbm".

    import hbmcomm.torch
    torch.distributed.init_process_group("hbm")

From torch 2.14 on the import may be left out: torch finds the backend by the package's entry point.
Where the installation holds no compiled C++ library for the version of torch, the first process
group builds it, which takes about a minute.
"""

from torch import distributed

from hbmcomm.torch.group import create
from hbmcomm.torch.memory import empty, handle, is_in_arena, kind_of, memory

__all__ = ["empty", "handle", "is_in_arena", "kind_of", "memory", "register"]


def register() -> None:
    """Register the backend, once; torch 2.14 calls this by the entry point."""
    if "HBM" not in distributed.Backend._plugins:
        distributed.Backend.register_backend("hbm", create, extended_api=True, devices=["cpu"])


register()
