"""Ranks count those that share their kernel, whatever their hosts are called."""

from pathlib import Path

from experiments.machine import kernels


def positions(*where: str) -> list[int]:
    """Positions of ranks that are each at "kernel/host"."""
    places = [tuple(place.split("/")) for place in where]
    return [kernels.position(places, rank) for rank in range(len(places))]


def test_a_container_has_the_kernel_of_its_machine() -> None:
    assert kernels.kernel() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_ranks_are_numbered_in_their_order() -> None:
    for case, where, numbers in (
        ("one rank", "a/n", [0]),
        ("one machine", "a/n a/n a/n a/n", [0, 1, 2, 3]),
        ("hosts of a rank each", "a/n0 a/n1 a/n2 a/n3", [0, 1, 2, 3]),
        ("each machine anew", "a/a b/b a/a b/b b/b", [0, 0, 1, 1, 2]),
    ):
        assert positions(*where.split()) == numbers, case


def test_few_cpus_are_shared_by_ranks_of_different_hosts() -> None:
    for deal in ("11223344", "12341234"):
        by_host: dict[str, list[int]] = {}
        for host, place in zip(deal, positions(*(f"a/{host}" for host in deal)), strict=True):
            by_host.setdefault(host, []).append(place % 2)
        assert list(by_host.values()) == [[0, 1], [1, 0], [0, 1], [1, 0]], deal
