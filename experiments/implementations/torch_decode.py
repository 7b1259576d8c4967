"""A decode step of tensor-parallel inference: an all_reduce after each pair of matrix products.

Each rank has its columns of the first matrix of a pair and its rows of the second one, as in
Shoeybi et al., Megatron-LM, arXiv:1909.08053. The partial sums are in the receive buffer.
"""

import functools
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from experiments.measure.operations import Array, Ready
from experiments.model.workloads import HIDDEN

INNER = 1024  # columns of a pair's first matrix, of all ranks together
PAIRS = 8
SEED = 1


def decode(comm: MPI.Intracomm, group: Any, recv: Array) -> Ready:
    """One step for as many tokens as the receive buffer has states.

    Args:
        group: None: the ranks do not communicate.
    """
    import torch
    from torch import distributed as dist

    begin, end = (rank * INNER // comm.size for rank in (comm.rank, comm.rank + 1))
    own = [(up[:, begin:end].contiguous(), down[begin:end]) for up, down in _weights()]
    partial = torch.from_numpy(recv).view(-1, HIDDEN)
    draw = torch.Generator().manual_seed(SEED + 1)
    tokens = torch.randn((len(partial), HIDDEN), generator=draw)
    state = torch.empty_like(tokens)

    def all_reduce() -> None:
        if group is not None:
            dist.all_reduce(partial, group=group)

    step = functools.partial(_step, tokens, state, partial, own, all_reduce)

    def wrong() -> int:
        state.zero_()
        step()
        if group is None:
            return 0
        due, sums = torch.empty_like(tokens), torch.empty_like(tokens)
        _step(tokens, due, sums, _weights(), lambda: None)
        return int((~torch.isclose(state, due, rtol=1e-4, atol=1e-4)).sum())

    return Ready(step, wrong=wrong)


def _step(
    tokens: Any, state: Any, partial: Any, weights: list[Any], all_reduce: Callable[[], None]
) -> None:
    import torch

    state.copy_(tokens)
    for up, down in weights:
        torch.mm(torch.mm(state, up).tanh_(), down, out=partial)
        all_reduce()
        state.add_(partial)


@functools.cache
def _weights() -> list[Any]:
    """The pairs of matrices, whole; alike on every rank."""
    import torch

    draw = torch.Generator().manual_seed(SEED)
    shapes = ((HIDDEN, INNER), (INNER, HIDDEN))
    return [
        [torch.randn(shape, generator=draw) / shape[0] ** 0.5 for shape in shapes]
        for _ in range(PAIRS)
    ]
