"""What one process can show of FusedAllreduce: arguments, errors, torch; then real ranks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from hbmcomm import HbmcommError
from hbmcomm.training.fusion import FusedAllreduce
from tests.starting import MakeHosts, Start

RANKS = Path(__file__).parent / "ranks"


@pytest.fixture
def fused() -> Iterator[FusedAllreduce]:
    with FusedAllreduce(MPI.COMM_SELF, overlap=False) as made:
        yield made


@pytest.mark.parametrize(
    ("tensor", "error", "words"),
    [
        ([1.0, 2.0], TypeError, "found list"),
        (np.zeros(3, "S4"), TypeError, "can be added; found"),
        (np.zeros(3, ">f4"), TypeError, "can be added; found"),
        (np.zeros((4, 4))[:, 1], ValueError, "submit a contiguous tensor"),
        (np.broadcast_to(np.zeros(1), (3,)), ValueError, "contiguous and writable"),
    ],
)
def test_what_cannot_be_reduced_in_place_is_refused(
    fused: FusedAllreduce, tensor: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        fused.submit("w", tensor)
    assert str(caught.value).startswith("'w' must ")


def test_a_name_is_pending_once(fused: FusedAllreduce) -> None:
    fused.submit("w", np.ones(3))
    with pytest.raises(ValueError, match="not reduced yet; wait"):
        fused.submit("w", np.ones(3))
    fused.wait()
    fused.submit("w", np.ones(3)).wait()


def test_arguments_are_checked_before_anything_is_made() -> None:
    for wrong in ({"fusion_bytes": 3}, {"cycle": -1.0}, {"patience": 0.0}):
        with pytest.raises(ValueError, match="give at least 64 bytes"):
            FusedAllreduce(MPI.COMM_SELF, **wrong)


def test_a_mean_needs_numbers_that_can_be_divided() -> None:
    with (
        FusedAllreduce(MPI.COMM_SELF, overlap=False, mean=True) as fused,
        pytest.raises(TypeError, match="has no mean"),
    ):
        fused.submit("n", np.ones(3, "int32"))


def test_no_tensors_have_no_buffers(fused: FusedAllreduce) -> None:
    assert fused.buffers([]) == []


def test_an_error_of_the_program_leaves_without_the_other_ranks() -> None:
    with pytest.raises(ZeroDivisionError), FusedAllreduce(MPI.COMM_SELF) as fused:
        fused.submit("w", np.ones(3))
        raise ZeroDivisionError
    with pytest.raises(HbmcommError):
        fused.submit("w", np.ones(3))


def test_torch_tensors_are_reduced_in_their_own_memory(fused: FusedAllreduce) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.ones(3, 4, requires_grad=True)
    (weight * torch.arange(4)).sum().backward()
    at = weight.grad.data_ptr()
    fused.submit("weight", weight.grad).wait()
    assert weight.grad.data_ptr() == at
    assert torch.equal(weight.grad, torch.arange(4.0).expand(3, 4))
    (block,) = fused.buffers([(3, 4)])
    weight.grad = torch.from_numpy(block)
    assert fused.submit("weight", weight.grad).signature.place is not None
    fused.wait()
    with pytest.raises(TypeError, match="NumPy has"):
        fused.submit("half", torch.ones(3, dtype=torch.bfloat16))


@pytest.mark.ranks
@pytest.mark.parametrize(("transport", "ranks"), [("direct", 3), ("mpi", 2)])
def test_ranks_agree_on_order_shapes_errors_and_ends(
    mpirun: Start, transport: str, ranks: int
) -> None:
    job = mpirun(RANKS / "fusing.py", ranks, transport)
    assert job.output.count("all is well") == ranks


@pytest.mark.ranks
def test_ranks_of_several_hosts(hosts: MakeHosts, mpirun_on: Start) -> None:
    made = hosts(2)
    job = mpirun_on(made, made.packed(2, 1), RANKS / "fusing.py", "hierarchical")
    assert job.output.count("all is well") == 3
