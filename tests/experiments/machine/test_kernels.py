"""Ranks count those that share their kernel, whatever their hosts are called."""

from pathlib import Path

import pytest

from experiments.machine import kernels


def positions(*where: str) -> list[int]:
    """Positions of ranks that are each at "kernel/host"."""
    places = [tuple(place.split("/")) for place in where]
    return [kernels.position(places, rank) for rank in range(len(places))]


def test_a_container_has_the_kernel_of_its_machine() -> None:
    assert kernels.kernel() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("a/n", [0]),
        ("a/n a/n a/n a/n", [0, 1, 2, 3]),
        ("a/n0 a/n1 a/n2 a/n3", [0, 1, 2, 3]),
        ("a/a b/b a/a b/b b/b", [0, 0, 1, 1, 2]),
    ],
    ids=["one rank", "one machine", "hosts of a rank each", "each machine anew"],
)
def test_ranks_are_numbered_in_their_order(where: str, numbers: list[int]) -> None:
    assert positions(*where.split()) == numbers


@pytest.mark.parametrize("deal", ["1 1 2 2 3 3 4 4", "1 2 3 4 1 2 3 4"])
def test_few_cpus_are_shared_by_ranks_of_different_hosts(deal: str) -> None:
    by_host: dict[str, list[int]] = {}
    places = positions(*(f"a/{host}" for host in deal.split()))
    for host, place in zip(deal.split(), places, strict=True):
        by_host.setdefault(host, []).append(place % 2)
    assert list(by_host.values()) == [[0, 1], [1, 0], [0, 1], [1, 0]]
