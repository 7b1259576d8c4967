"""What models count is what the library's own algorithms between hosts do, step by step."""

from collections import defaultdict

import pytest

from hbmcomm.costmodel import ALGORITHMS, SHARED
from hbmcomm.costmodel.counts import SEGMENT
from hbmcomm.costmodel.shared import flags
from tests.hbmcomm.hierarchical.steps import Algorithm, Step, algorithm

ENTRIES = 840  # divides by every number of hosts below

WALKED: dict[tuple[str, str], Algorithm] = {
    ("bcast", "binomial"): algorithm("TREE_BCAST"),
    ("reduce", "binomial"): algorithm("TREE_REDUCE"),
    ("allreduce", "binomial"): algorithm("TREE"),
    ("allreduce", "ring"): algorithm("RING"),
    ("allreduce", "recursive-doubling"): algorithm("DOUBLING"),
    ("allreduce", "rabenseifner"): algorithm("RABENSEIFNER"),
    ("bcast", "chain"): algorithm("CHAIN_BCAST"),
    ("reduce", "chain"): algorithm("CHAIN_REDUCE"),
}


def longest(walk: Algorithm, hosts: int, alpha: float, beta: float, gamma: float) -> float:
    """The time of the last host where a message takes alpha + beta x entries, a fold gamma each."""
    programs = [walk(host, hosts, ENTRIES) for host in range(hosts)]
    sends, receives = (_places(programs, which) for which in ("sends", "receives"))
    assert sends.keys() == receives.keys()
    partner = {}
    for key, one in sends.items():
        for mine, theirs in zip(one, receives[key], strict=True):
            partner[mine, key] = theirs
            partner[theirs, key] = mine
    ends: dict[tuple[int, int], float] = {(host, -1): 0.0 for host in range(hosts)}
    waiting = [(host, place) for host, steps in enumerate(programs) for place in range(len(steps))]
    while waiting:
        place = next(place for place in waiting if _ready(place, programs, partner, ends))
        waiting.remove(place)
        host, number = place
        step = programs[host][number]
        end = ends[host, number - 1]
        for key, entries in _messages(host, step):
            other, turn = partner[place, key]
            begin = max(ends[host, number - 1], ends[other, turn - 1])
            folds = gamma * entries if step.folds and key[1] == host else 0
            end = max(end, begin + alpha + beta * entries + folds)
        ends[place] = end
    return max(ends.values())


def _messages(host: int, step: Step) -> list[tuple[tuple[int, int], int]]:
    out = [((host, sent.host), sent.entries[1] - sent.entries[0]) for sent in step.sends]
    return out + [((got.host, host), got.entries[1] - got.entries[0]) for got in step.receives]


def _places(programs: list[list[Step]], which: str) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """By sender and receiver, the steps that have their messages, in order."""
    places = defaultdict(list)
    for host, steps in enumerate(programs):
        for number, step in enumerate(steps):
            for message in getattr(step, which):
                key = (host, message.host) if which == "sends" else (message.host, host)
                places[key].append((host, number))
    return places


def _ready(place, programs, partner, ends) -> bool:  # type: ignore[no-untyped-def]
    host, number = place
    if (host, number - 1) not in ends:
        return False
    others = [partner[place, key] for key, _ in _messages(host, programs[host][number])]
    return all((other, turn - 1) in ends for other, turn in others)


@pytest.mark.parametrize("names", WALKED, ids="-".join)
def test_messages_bytes_and_folds_are_those_of_the_steps(names: tuple[str, str]) -> None:
    """Where Rabenseifner has a rest, it waits while others exchange: no sum of paths."""
    for hosts in (2, 4, 8) if names[1] == "rabenseifner" else (2, 3, 4, 5, 8):
        counts, walk = ALGORITHMS[names[0]][names[1]](hosts, ENTRIES), WALKED[names]
        assert longest(walk, hosts, 1, 0, 0) == counts.messages, hosts
        assert longest(walk, hosts, 0, 1, 0) == pytest.approx(counts.sent), hosts
        assert longest(walk, hosts, 0, 0, 1) == pytest.approx(counts.folded), hosts


def test_every_algorithm_costs_more_for_more_ranks_and_bytes() -> None:
    for operation, algorithms in ALGORITHMS.items():
        assert SHARED[operation](4, 2e6).sent == 2 * SHARED[operation](4, 1e6).sent
        for name, count in algorithms.items():
            for less, more in ((2, 4), (4, 16)):
                costs = zip(count(less, 1e6), count(more, 1e6), strict=True)
                assert all(one <= two for one, two in costs), (operation, name)
            assert count(4, 2e6).sent > count(4, 1e6).sent, (operation, name)


def test_a_chain_of_many_pieces_sends_hardly_more_than_one_message_of_all() -> None:
    counts = ALGORITHMS["bcast"]["chain"](8, 64 * SEGMENT)
    assert counts.messages == 6 + 64
    assert counts.sent < 1.1 * 64 * SEGMENT


def test_two_ranks_wait_for_one_flag_and_groups_add_a_level() -> None:
    assert flags(2) == 1
    assert flags(8) < flags(9) < 2 * flags(8)
