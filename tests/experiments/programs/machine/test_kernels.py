"""Ranks count those that share their kernel, whatever their hosts are called."""

from pathlib import Path

import pytest

from experiments.programs.machine import kernels


def test_ranks_are_numbered_anew_on_each_machine() -> None:
    dealt = ["a", "b", "a", "b", "b"]
    assert [kernels.position(dealt, rank) for rank in range(5)] == [0, 0, 1, 1, 2]


def test_a_container_has_the_kernel_of_its_machine() -> None:
    assert kernels.kernel() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize("ranks", [1, 4])
def test_on_one_machine_the_position_is_the_rank(ranks: int) -> None:
    assert [kernels.position(["a"] * ranks, rank) for rank in range(ranks)] == list(range(ranks))
