"""Operators of torch as contenders refuse ranks that they do not serve."""

import pytest
from mpi4py import MPI

from experiments.implementations import torch_operators
from experiments.implementations.contender import ContenderMissing

pytestmark = pytest.mark.ranks


def test_vllm_is_left_out_for_numbers_of_ranks_that_end_it() -> None:
    with pytest.raises(ContenderMissing, match="it serves 2, 3, 4, 8 ranks, and not 1"):
        torch_operators.vllm(MPI.COMM_SELF)
