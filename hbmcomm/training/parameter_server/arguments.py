"""The arguments of a job: checked on each rank, compared between ranks, turned into a `Job`."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from hbmcomm import topology
from hbmcomm.training.parameter_server.job import LINE, Design, Job, Shape
from hbmcomm.training.parameter_server.optimizers import Floats, Optimizer
from hbmcomm.training.together import run_on_all

Owners = Literal["all"] | Iterable[int]


class Asked(NamedTuple):
    """What the program gives; see ParameterServer."""

    tensors: Sequence[Any]
    optimizer: Optimizer
    chunk_bytes: int
    owners: Owners
    design: Design


class _Common(NamedTuple):
    """What must be equal on all ranks."""

    shapes: tuple[Shape, ...]
    optimizer: str
    chunk_bytes: int
    owners: tuple[int, ...]
    design: Design


def agreed(comm: Any, asked: Asked) -> tuple[Job, list[Floats] | None]:
    """The job, and the first weights; collective.

    The first worker gets the weights, the others an empty list. None: it gives shapes alone.

    Raises:
        ValueError, TypeError: On every rank.
    """
    common = run_on_all(comm, lambda: _checked(comm, asked))
    node = _node()
    has_values = any(not _is_shape(tensor) for tensor in asked.tensors)
    gathered = comm.allgather((common, node, has_values))
    for rank, (others, _, _) in enumerate(gathered):
        for name, first, other in zip(_Common._fields, gathered[0][0], others, strict=True):
            if first != other:
                raise ValueError(
                    f"{name} must be equal on all ranks; found {first} on rank 0 and {other} on "
                    f"rank {rank}; give the same"
                )
    ranks, own = range(comm.size), common.owners
    workers = tuple(ranks) if len(own) == comm.size else tuple(sorted(set(ranks) - set(own)))
    job = Job(
        comm.rank,
        common.shapes,
        common.chunk_bytes,
        {rank: gathered[rank][1] for rank in own},
        workers,
        scale=1 / len(workers),
    )
    if not gathered[workers[0]][2]:
        return job, None
    given = asked.tensors if comm.rank == workers[0] else ()
    return job, run_on_all(comm, lambda: [_values(tensor) for tensor in given])


def _node() -> int:
    """The NUMA node of this rank's CPUs, or the first of several."""
    cpus = os.sched_getaffinity(0)
    return min((node.id for node in topology().nodes if cpus & {*node.cpus}), default=0)


def _values(tensor: Any) -> Floats:
    """The values of an array, or of a torch tensor that may need gradients; zeros of a shape."""
    if _is_shape(tensor):
        return np.zeros(_shape(tensor), "float32")
    return np.asarray(tensor.detach() if hasattr(tensor, "detach") else tensor, "float32")


def _is_shape(tensor: Any) -> bool:
    return not hasattr(tensor, "shape") or isinstance(tensor, np.integer)


def _shape(tensor: Any) -> Shape:
    shape = tensor if _is_shape(tensor) else tensor.shape
    try:
        return tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        raise TypeError(
            f"tensors hold {tensor!r}: neither a shape nor an array; give either"
        ) from None


def _checked(comm: Any, asked: Asked) -> _Common:
    shapes, most = tuple(map(_shape, asked.tensors)), asked.chunk_bytes
    if not shapes:
        raise ValueError("tensors: found none; give at least one shape or array")
    if negative := [shape for shape in shapes if min(shape, default=0) < 0]:
        raise ValueError(f"tensors: found the shape {negative[0]}; give sizes of at least 0")
    if not isinstance(asked.optimizer, Optimizer):
        raise TypeError(f"optimizer={asked.optimizer!r}: not an optimiser; give one such as SGD()")
    if not hasattr(most, "__index__") or most < LINE or most % LINE:
        raise ValueError(f"chunk_bytes={most!r}: not a positive multiple of {LINE}; take 32768")
    if comm.transport != "direct" and asked.design != Design():
        raise ValueError(
            "shared_weights, fused and pull need transport direct; found transport "
            f"{comm.transport}; leave them out"
        )
    return _Common(shapes, repr(asked.optimizer), most, _owners(comm, asked.owners), asked.design)


def _owners(comm: Any, asked: Owners) -> tuple[int, ...]:
    ranks = tuple(range(comm.size))
    if isinstance(asked, str) and asked == "all":  # an array compares each entry
        return ranks
    chosen = set(asked) if isinstance(asked, Iterable) else {asked}
    if not chosen or not chosen < set(ranks):
        raise ValueError(
            f"owners={sorted(chosen, key=str)}: not some of the ranks 0 to {comm.size - 1} with "
            "others left to work; name fewer, or take 'all'"
        )
    return tuple(sorted(map(int, chosen)))
