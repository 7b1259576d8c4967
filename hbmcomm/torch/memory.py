"""Memory of torch's tensors: the ranks' arena, which collectives use in place, and kinds."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from weakref import WeakValueDictionary

import torch
from torch import distributed

from hbmcomm.memory import blocks
from hbmcomm.memory.blocks import Block
from hbmcomm.memory.kinds import Kind, resolve
from hbmcomm.torch.shim_loading import boxed, shim


def empty(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    group: distributed.ProcessGroup | None = None,
) -> torch.Tensor:
    """A tensor of arbitrary contents in a group's part of the arena; not collective.

    It stays in the arena when it grows (`resize_`).

    Args:
        size: As torch.empty takes it.
        dtype: Left out: torch's default.
        group: One of backend "hbm"; left out: the default group.

    Raises:
        torch.OutOfMemoryError: This rank's part of the arena has no room; `resize_` raises it too.
        RuntimeError: The group is of another backend, or a dimension is negative.
        TypeError: A dimension is not an integer.
        ValueError: There is no such group in this process.
    """
    shape = torch.empty(_dimensions(size), device="meta").shape  # checked by torch
    flat: torch.Tensor = _backend(group).allocate_tensor(
        shape.numel(), dtype=dtype or torch.get_default_dtype(), device=torch.device("cpu")
    )
    return flat.view(shape)


def _dimensions(size: tuple[int | Sequence[int], ...]) -> tuple[int, ...]:
    """The dimensions that a program gave one by one or as one sequence.

    Integers of NumPy and tensors of one number are integers too.
    """
    if len(size) == 1:
        try:
            return (operator.index(size[0]),)  # type: ignore[arg-type]
        except TypeError:
            if isinstance(size[0], Iterable):
                size = tuple(size[0])
    return tuple(operator.index(number) for number in size)  # type: ignore[arg-type]


@contextmanager
def memory(kind: str, nodes: Iterable[int] | None = None) -> Iterator[Kind]:
    """Inside, every new tensor of 64 KiB and more on the CPU is in a kind of memory.

    For parameters and caches of a model: `with hbmcomm.torch.memory("hbw"): model = Model()`.
    Applies to the calling thread, not to those of autograd. Contexts nest; tensors outlive them. A
    tensor that grows (`resize_`) gets new memory: of the kind inside, torch's own outside.

    Args:
        kind: A name of `hbmcomm.KINDS`.
        nodes: Bind strictly to these NUMA nodes of the kind.

    Yields:
        The kind, with its nodes and the evidence for them.

    Raises:
        KindUnavailable: This machine has no such memory.
        torch.OutOfMemoryError: In the block: a strict kind has less free memory.
        ValueError: Unknown kind.
    """
    resolved = resolve(kind, None if nodes is None else tuple(nodes))
    number = _number((resolved, nodes is not None))
    _serve_kinds()
    before = shim().choose_kind(number)
    try:
        yield resolved
    finally:
        shim().choose_kind(before)


_kinds: list[tuple[Kind, bool]] = []
"""Kinds by their number, from 1 on, and whether the program chose their nodes."""


def _number(kind: tuple[Kind, bool]) -> int:
    if kind not in _kinds:
        _kinds.append(kind)
    return _kinds.index(kind) + 1


@cache
def _serve_kinds() -> None:
    shim().use_kinds(id(_allocate))


def _allocate(number: int, nbytes: int) -> Block:
    """Called by torch's allocator."""
    kind, pinned = _kinds[number - 1]
    block = blocks.allocate(kind, nbytes, pinned)
    _blocks[block.address] = block
    return block


_blocks: WeakValueDictionary[int, Block] = WeakValueDictionary()
"""By their addresses."""


def kind_of(tensor: torch.Tensor) -> str | None:
    """The kind of memory that a tensor's data was allocated in; None: torch's own memory."""
    address = tensor.untyped_storage().data_ptr()
    block = _blocks.get(address) or blocks.find(address)
    return None if block is None else block.kind.name


def is_in_arena(tensor: torch.Tensor, group: distributed.ProcessGroup | None = None) -> bool:
    """Whether a tensor is in this rank's part of a group's arena; left out: the default group."""
    inside: bool = shim().is_in_arena(handle(group), tensor.data_ptr())
    return inside


def handle(group: distributed.ProcessGroup | None = None) -> int:
    """The number by which torch.ops.hbmcomm's operators name a group; left out: the default group.

    Raises:
        ValueError: The group is of another backend, or there is no such group in this process.
    """
    number: int = shim().handle_of(boxed(_backend(group)))
    return number


def _backend(group: distributed.ProcessGroup | None) -> distributed.Backend:
    """The backend of a group for the CPU; left out: of the default group.

    With TORCH_DISTRIBUTED_DEBUG=DETAIL torch puts a wrapper around it, which is taken off.

    Raises:
        ValueError: There is no such group in this process.
    """
    chosen = group if group is not None else distributed.group.WORLD
    if chosen is None:
        raise ValueError(
            "hbmcomm.torch: there is no default process group; call "
            "torch.distributed.init_process_group('hbm') first"
        )
    if not isinstance(chosen, distributed.ProcessGroup):  # what new_group gives to other ranks
        raise ValueError(
            f"hbmcomm.torch: {chosen!r} is not a process group that this process is in; call from "
            "the ranks of the group"
        )
    backend = chosen._get_backend(torch.device("cpu"))
    while (wrapped := getattr(backend, "wrapped_pg", None)) is not None:
        backend = wrapped
    return backend
