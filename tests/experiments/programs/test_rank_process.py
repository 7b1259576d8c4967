"""Where a rank runs, and what it prints before it ends the others."""

import os
import threading
import time
from pathlib import Path

from experiments.programs import rank_process

LATE = 0.2  # seconds
PATIENCE = 0.1  # seconds


def test_it_waits_until_a_late_reader_has_read_all() -> None:
    reader, writer = os.pipe()
    taken: list[float] = []

    def read() -> None:
        time.sleep(LATE)
        os.read(reader, 4096)
        taken.append(time.monotonic())

    os.write(writer, b"why it failed")
    thread = threading.Thread(target=read)
    thread.start()
    rank_process.await_read(writer)
    ended = time.monotonic()
    thread.join()
    assert ended >= taken[0]


def test_it_does_not_wait_for_ever_for_a_launcher_that_does_not_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"why it failed")
    rank_process.await_read(writer, PATIENCE)
    os.close(reader)


def test_a_file_is_read_by_nobody(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as file:
        file.write(b"why it failed")
        began = time.monotonic()
        rank_process.await_read(file.fileno(), 60.0)
    assert time.monotonic() - began < 30.0


def positions(*where: str) -> list[int]:
    """Positions of ranks that are each at "kernel/host"."""
    places = [tuple(place.split("/")) for place in where]
    return [rank_process.position(places, rank) for rank in range(len(places))]


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
