"""Memory of torch's tensors: the ranks' arena, which collectives use in place, and kinds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import distributed

from hbmcomm.torch.shim_loading import shim


def empty(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    group: distributed.ProcessGroup | None = None,
) -> torch.Tensor:
    """A tensor of arbitrary contents in a group's part of the arena; not collective.

    Args:
        size: As torch.empty takes it.
        dtype: Left out: torch's default.
        group: One of backend "hbm"; left out: the default group.

    Raises:
        torch.OutOfMemoryError: This rank's part of the arena has no room.
        RuntimeError: The group is of another backend.
    """
    shape = torch.Size(size if not size or isinstance(size[0], int) else size[0])
    flat: torch.Tensor = _backend(group).allocate_tensor(
        shape.numel(), dtype=dtype or torch.get_default_dtype(), device=torch.device("cpu")
    )
    return flat.view(shape)


def is_in_arena(tensor: torch.Tensor, group: distributed.ProcessGroup | None = None) -> bool:
    """Whether a tensor is in this rank's part of a group's arena; left out: the default group."""
    found: bool = shim().is_in_arena(_backend(group), tensor)
    return found


def handle(group: distributed.ProcessGroup | None = None) -> int:
    """The number by which torch.ops.hbmcomm's operators name a group; left out: the default group.

    Raises:
        ValueError: The group is of another backend.
    """
    found: int = shim().handle_of(_backend(group))
    return found


def _backend(group: distributed.ProcessGroup | None) -> distributed.Backend:
    chosen = group if group is not None else distributed.group.WORLD
    return chosen._get_backend(torch.device("cpu"))
