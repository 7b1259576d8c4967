"""Ranks count those that share their kernel, whatever their hosts are called."""

from pathlib import Path

import pytest

from experiments.programs.machine import kernels


def test_ranks_are_numbered_anew_on_each_machine() -> None:
    dealt = [(name, name) for name in ("a", "b", "a", "b", "b")]
    assert [kernels.position(dealt, rank) for rank in range(5)] == [0, 0, 1, 1, 2]


def test_a_container_has_the_kernel_of_its_machine() -> None:
    assert kernels.kernel() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize("ranks", [1, 4])
def test_on_one_machine_the_position_is_the_rank(ranks: int) -> None:
    assert [kernels.position([("a", "n")] * ranks, rank) for rank in range(ranks)] == list(
        range(ranks)
    )


@pytest.mark.parametrize("deal", ["n1 n1 n2 n2 n3 n3 n4 n4", "n1 n2 n3 n4 n1 n2 n3 n4"])
def test_few_cpus_are_shared_by_ranks_of_different_hosts(deal: str) -> None:
    hosts = deal.split()
    cpus = [kernels.position([("a", name) for name in hosts], rank) % 2 for rank in range(8)]
    by_host = {
        name: [c for c, own in zip(cpus, hosts, strict=True) if own == name] for name in hosts
    }
    assert list(by_host.values()) == [[0, 1], [1, 0], [0, 1], [1, 0]]


def test_hosts_of_a_rank_each_take_cpus_in_their_order() -> None:
    where = [("a", f"n{rank}") for rank in range(4)]
    assert [kernels.position(where, rank) for rank in range(4)] == [0, 1, 2, 3]
