"""Every operation on every type of elements, against what the ranks' numbers say must come out."""

import itertools
import sys
import time
from datetime import timedelta

import torch
from torch import distributed as dist

import hbmcomm.torch
from tests.hbmcomm.ranks.refusal import refused

SUMMED = (
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
    *(torch.half, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128),
)
MOVED = (*SUMMED, torch.bool, torch.uint16, torch.float8_e4m3fn)
LENGTHS = (0, 1, 37, 70_000)
UNALIGNED = torch.frombuffer(bytearray(9), dtype=torch.float32, offset=1, count=2)

assert "mpi4py" not in sys.modules, "a process group needs no MPI"
dist.init_process_group("hbm")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
Op = dist.ReduceOp


def own(length: int, dtype: torch.dtype, rank: int = RANK) -> torch.Tensor:
    """What a rank sends: small numbers that differ by rank and place."""
    values = (torch.arange(length) * (rank + 1) + rank) % 3
    return values.to(torch.float32).to(dtype)


def same_bits(tensor: torch.Tensor) -> None:
    """Every rank has the same bits."""
    sent = tensor.contiguous().view(torch.uint8).clone()
    dist.broadcast(sent, 0)
    assert torch.equal(sent, tensor.contiguous().view(torch.uint8))


def reductions() -> None:
    for dtype, length in itertools.product(SUMMED, LENGTHS):
        every = torch.stack([own(length, dtype, rank) for rank in range(SIZE)])
        tensor = own(length, dtype)
        dist.all_reduce(tensor)
        assert torch.equal(tensor, every.sum(0, dtype=dtype)), (dtype, length)
        same_bits(tensor)
        tensor = own(length, dtype)
        dist.reduce(tensor, SIZE - 1)
        if RANK == SIZE - 1:
            assert torch.equal(tensor, every.sum(0, dtype=dtype)), (dtype, length)
        block = torch.empty(length, dtype=dtype)
        blocks = [own(length, dtype, RANK + rank) for rank in range(SIZE)]
        due = torch.stack([own(length, dtype, RANK + rank) for rank in range(SIZE)]).sum(0)
        dist.reduce_scatter(block, blocks)
        assert torch.equal(block, due.to(dtype)), (dtype, length)
        dist.reduce_scatter_tensor(block.zero_(), torch.cat(blocks))
        assert torch.equal(block, due.to(dtype)), (dtype, length)


def other_reductions() -> None:
    every = torch.stack([own(50, torch.int32, rank) for rank in range(SIZE)])
    bits = {Op.BAND: torch.bitwise_and, Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor}
    for op, function in bits.items():
        due = every[0]
        for operand in every[1:]:
            due = function(due, operand)
        tensor = own(50, torch.int32)
        dist.all_reduce(tensor, op)
        assert torch.equal(tensor, due), op
    for op, due in (
        (Op.MIN, every.amin(0)),
        (Op.MAX, every.amax(0)),
        (Op.PRODUCT, every.prod(0)),
        (Op.AVG, every.sum(0).div(SIZE, rounding_mode="trunc")),
    ):
        tensor = own(50, torch.int32)
        dist.all_reduce(tensor, op)
        assert torch.equal(tensor, due.int()), op
    scaled = own(50, torch.float32)
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(0.5))
    assert torch.equal(scaled, every.sum(0) * 0.5)
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        unsigned = torch.tensor([RANK, 9], dtype=dtype)
        dist.all_reduce(unsigned, Op.AVG)
        assert unsigned.tolist() == [(SIZE - 1) // 2, 9], dtype
    truth = torch.tensor([RANK == 0, True, False])
    dist.all_reduce(truth)
    assert truth.tolist() == [True, True, False]


def factors_of_other_types() -> None:
    """A factor's type changes neither the result's nor how much is written."""
    for dtype, factor in itertools.product(
        (torch.half, torch.float32, torch.int32),
        (0.5, torch.tensor([0.5], dtype=torch.float64), torch.tensor([0.5], dtype=torch.half)),
    ):
        op = dist._make_nccl_premul_sum(factor)
        memory = torch.full((6,), 7, dtype=dtype)
        dist.reduce_scatter_tensor(memory[:2], torch.full((2 * SIZE,), 4, dtype=dtype), op)
        assert memory.tolist() == [2 * SIZE] * 2 + [7] * 4, (dtype, factor)
        for reduce in (dist.all_reduce, lambda tensor, op: dist.reduce(tensor, 0, op)):
            tensor = torch.full((2,), 4, dtype=dtype)
            reduce(tensor, op)
            assert tensor.tolist() == [2 * SIZE] * 2 or RANK, (dtype, factor)


def moves() -> None:
    for dtype, length in itertools.product(MOVED, LENGTHS):
        every = [own(length, dtype, rank) for rank in range(SIZE)]
        blocks = [torch.empty(length, dtype=dtype) for _ in range(SIZE)]
        dist.all_gather(blocks, own(length, dtype))
        assert all(map(equal, blocks, every)), (dtype, length)
        flat = torch.empty(SIZE * length, dtype=dtype)
        dist.all_gather_into_tensor(flat, own(length, dtype))
        assert equal(flat, torch.cat(every)), (dtype, length)
        tensor = own(length, dtype)
        dist.broadcast(tensor, SIZE - 1)
        assert equal(tensor, every[SIZE - 1]), (dtype, length)
        blocks = [torch.empty(length, dtype=dtype) for _ in range(SIZE)]
        dist.gather(own(length, dtype), blocks if RANK == 0 else None, 0)
        assert RANK or all(map(equal, blocks, every)), (dtype, length)
        dist.scatter(tensor, every if RANK == 0 else None, 0)
        assert equal(tensor, every[RANK]), (dtype, length)
        dist.all_to_all(blocks, [own(length, dtype, RANK + rank) for rank in range(SIZE)])
        due = [own(length, dtype, RANK + rank) for rank in range(SIZE)]
        assert all(map(equal, blocks, due)), (dtype, length)


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))


def in_inference_mode() -> None:
    """Tensors of an inference mode are written in it and outside, by the worker too."""
    for inside, is_async in itertools.product((True, False), repeat=2):
        with torch.inference_mode():
            gaps, block = torch.ones(4, 4)[:, ::2], torch.ones(3)
            output = torch.zeros(SIZE * 4, 4)[:, ::2]
            parts = torch.ones(SIZE * 3)
        with torch.inference_mode(inside):
            for work in (
                dist.all_reduce(gaps, async_op=is_async),
                dist.all_gather_into_tensor(output, gaps, async_op=is_async),
                dist.reduce_scatter_tensor(block, parts, Op.AVG, async_op=is_async),
            ):
                assert not work or work.wait()
        assert gaps.eq(SIZE).all() and output.eq(SIZE).all() and block.eq(1).all()


def unequal_and_with_gaps() -> None:
    blocks = [torch.empty(rank + 1) for rank in range(SIZE)]
    dist.all_gather(blocks, torch.full((RANK + 1,), float(RANK)))
    assert all((blocks[rank] == rank).all() for rank in range(SIZE))
    rows = torch.full((SIZE * (RANK + 1), 3), float(RANK))
    received = torch.empty(sum(range(1, SIZE + 1)), 3)
    sizes = [rank + 1 for rank in range(SIZE)]
    dist.all_to_all_single(received, rows, sizes, [RANK + 1] * SIZE)
    assert received[:, 0].tolist() == [float(rank) for rank in range(SIZE) for _ in range(rank + 1)]
    gaps = torch.arange(24.0).reshape(4, 6)[:, ::2]
    dist.all_reduce(gaps)
    assert torch.equal(gaps, SIZE * torch.arange(24.0).reshape(4, 6)[:, ::2])
    leaf = torch.ones(5, requires_grad=True)
    dist.all_reduce(leaf)
    assert leaf.detach().eq(SIZE).all()


def a_timeout_beyond_the_clock() -> None:
    group = dist.new_group(timeout=timedelta(days=400 * 365))
    time.sleep(0.2 * RANK)
    dist.barrier(group)


def between_two() -> None:
    left, right = (RANK - 1) % SIZE, (RANK + 1) % SIZE
    received = torch.empty(1000)
    ops = [
        dist.P2POp(dist.isend, torch.full((1000,), float(RANK)), right),
        dist.P2POp(dist.irecv, received, left),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert received.eq(left).all()
    sparse = torch.sparse_coo_tensor([[RANK]], [1.0], (SIZE,))
    dist.all_reduce(sparse)
    assert sparse.to_dense().eq(1).all()
    dist.group.WORLD.monitored_barrier()


def refusals() -> None:
    for call, words in (
        (lambda: dist.all_reduce(torch.ones(2), Op.BAND), "BAND is not defined for Float"),
        (lambda: dist.broadcast(torch.ones(2), SIZE), f"no rank {SIZE} in a group"),
        (lambda: dist.reduce(torch.ones(2), SIZE), f"no rank {SIZE} in a group"),
        (lambda: dist.all_to_all([torch.ones(1)] * SIZE, []), "found 0"),
        (lambda: dist.all_reduce(UNALIGNED), "multiple of their element's size"),
        (lambda: dist.all_gather([torch.ones(2)] * (SIZE + 1), torch.ones(2)), f"found {SIZE + 1}"),
        (lambda: dist.all_to_all_single(torch.ones(SIZE), torch.ones(2 * SIZE)), "split sizes"),
        (lambda: dist.all_to_all_single(torch.ones(()), torch.ones(())), "no dimension to split"),
    ):
        with refused((ValueError, RuntimeError), words):
            call()
    dist.barrier()


for part in (
    *(reductions, other_reductions, factors_of_other_types),
    *(moves, in_inference_mode, unequal_and_with_gaps, refusals, a_timeout_beyond_the_clock),
):
    part()
if SIZE > 1:  # gloo has no connection from a rank to itself
    between_two()
arena = hbmcomm.torch.empty(3, 4, dtype=torch.float64)
assert arena.shape == (3, 4) and arena.dtype == torch.float64
dist.destroy_process_group()
print("right")
