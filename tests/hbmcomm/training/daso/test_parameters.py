"""Views of a network's parameters, in NumPy and in torch."""

from pathlib import Path

import numpy as np
import pytest

from hbmcomm.training.daso.parameters import Arrays, Flat, adapted
from tests.starting import Start

WITH_TORCH = """
import torch
from mpi4py import MPI
from hbmcomm.training.daso import Daso, Schedule


def trained(wrapped):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    model[0].bias.requires_grad = False
    unused = torch.nn.Parameter(torch.ones(2))
    own = torch.optim.SGD([*model.parameters(), unused], 0.1, momentum=0.9)
    daso = Daso(own, MPI.COMM_SELF, Schedule(1, 0, 0)) if wrapped else None
    x = torch.randn(32, 6)
    for _ in range(20):
        own.zero_grad(set_to_none=True)
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
        (daso or own).step()
    if daso:
        daso.end_epoch(0.0)
        daso.close()
    return [each.detach() for each in model.parameters()] + [unused.detach()]


for own, due in zip(trained(True), trained(False), strict=True):
    torch.testing.assert_close(own, due)
for tensor in (torch.ones(2, dtype=torch.bfloat16), torch.ones(2, device="meta")):
    try:
        Daso(torch.optim.SGD([tensor.requires_grad_()]), MPI.COMM_SELF, Schedule(1))
    except ValueError as error:
        print(error)
"""


def test_many_arrays_are_packed_into_one_and_back() -> None:
    arrays = [np.arange(6.0).reshape(2, 3), np.array(6.0), np.arange(7.0, 9.0)]
    flat = Flat(arrays, np.empty(9))
    flat.pack(arrays)
    assert flat.whole.tolist() == list(range(9))
    flat.unpack(arrays, 0.5)
    assert arrays[0].tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]] and arrays[1] == 3.0


def test_each_parameter_needs_a_gradient_of_its_shape() -> None:
    with pytest.raises(ValueError, match="give one gradient for each parameter"):
        Arrays([np.zeros(3)], [np.zeros(4)], lambda: None)


def test_what_is_no_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match="found int: give Arrays"):
        adapted(3)


@pytest.mark.ranks
def test_an_optimizer_of_torch_on_one_rank_trains_as_without_daso(
    mpirun: Start, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    program = tmp_path / "with_torch.py"
    program.write_text(WITH_TORCH)
    refusals = mpirun(program, 1).output.splitlines()
    assert len(refusals) == 2 and all("on the CPU" in refusal for refusal in refusals)
