"""Tensors in the memory that ranks share, which collectives move without a copy in between."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import distributed


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
    chosen = group if group is not None else distributed.group.WORLD
    backend = chosen._get_backend(torch.device("cpu"))
    flat: torch.Tensor = backend.allocate_tensor(
        shape.numel(), dtype=dtype or torch.get_default_dtype(), device=torch.device("cpu")
    )
    return flat.view(shape)
