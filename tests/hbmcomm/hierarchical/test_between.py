"""Algorithms between hosts, played through without any: what each ends with, and what it costs."""

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.hierarchical import between
from hbmcomm.hierarchical.between import (
    Algorithm,
    Message,
    Range,
    Steps,
    split,
    without_empty,
)

Entry = tuple[int, ...]
"""The hosts that contribute to an entry, in the order of the operands."""

TREE = between.tree_bcast, between.tree_reduce
CHAIN = between.chain_bcast, between.chain_reduce

sizes = st.integers(2, 17)
counts = st.integers(0, 40)


class Played:
    """Every host's entries after all steps, and what each host sent."""

    def __init__(self, plans: list[Steps], entries: list[list[Entry]]) -> None:
        self.entries = entries
        self.sent = [sum(_length(each) for step in plan for each in step.sends) for plan in plans]
        self.messages = sum(len(step.sends) for plan in plans for step in plan)
        self.rounds = max(map(len, plans))
        self._wires: dict[tuple[int, int], deque[tuple[list[Entry], bool]]] = defaultdict(deque)
        hosts = [self._play(host, plan) for host, plan in enumerate(plans)]
        for _ in range(4 * (self.rounds + 1) * len(hosts)):
            hosts = [each for each in hosts if next(each, "over") != "over"]
        assert not hosts, "hosts wait for messages that nobody sends"
        assert not any(self._wires.values()), "a message that nobody takes"

    def _play(self, host: int, plan: Steps):  # type: ignore[no-untyped-def]
        own = self.entries[host]
        for step in plan:
            for to, (begin, end) in step.sends:
                self._wires[host, to].append((own[begin:end], step.answered))
            yield
            for source, (begin, end) in step.receives:
                while not self._wires[source, host]:
                    yield
                came, is_answered = self._wires[source, host].popleft()
                assert len(came) == end - begin and is_answered == step.answered
                if step.folds:
                    pairs = zip(came, own[begin:end], strict=True)
                    came = [(a + b) if source < host else (b + a) for a, b in pairs]
                own[begin:end] = came


def _length(message: Message) -> int:
    return message.entries[1] - message.entries[0]


def play(algorithm: Callable[[int, int, int], Steps], size: int, count: int) -> Played:
    plans = [without_empty(algorithm(host, size, count)) for host in range(size)]
    return Played(plans, [[(host,)] * count for host in range(size)])


@given(st.sampled_from(sorted(between.ALLREDUCE)), sizes, counts)
def test_an_allreduce_gives_all_hosts_the_same_numbers_in_the_same_order(
    name: str, size: int, count: int
) -> None:
    found = play(between.ALLREDUCE[name], size, count).entries
    assert all(each == found[0] for each in found)
    assert all(sorted(entry) == list(range(size)) for entry in found[0])


@pytest.mark.parametrize("algorithms", [TREE, CHAIN])
@given(sizes, st.integers(1, 40), st.data())
def test_from_a_root_and_to_a_root_each_other_host_takes_one_message(
    algorithms: tuple[Algorithm, Algorithm], size: int, count: int, data: st.DataObject
) -> None:
    root = data.draw(st.integers(0, size - 1))
    bcast, reduce = (play(partial(of, root=root), size, count) for of in algorithms)
    assert all(each == [(root,)] * count for each in bcast.entries)
    assert all(sorted(entry) == list(range(size)) for entry in reduce.entries[root])
    assert bcast.messages == reduce.messages == size - 1


@given(sizes)
def test_in_a_tree_a_host_serves_the_next_one_once_the_last_has_answered(size: int) -> None:
    for host in range(size):
        served = [step.answered for step in between.tree_bcast(host, size, 1) if step.sends]
        assert served == [True] * (len(served) - 1) + [False] * bool(served)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=9))
def test_rings_reduce_and_gather_pieces_of_any_lengths(lengths: list[int]) -> None:
    ends = [sum(lengths[: each + 1]) for each in range(len(lengths))]
    pieces: list[Range] = [(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    size, count = len(pieces), ends[-1]

    def scatter(host: int, _size: int, _count: int) -> Steps:
        return between.reduce_scatter(host, pieces)

    def gather(host: int, _size: int, _count: int) -> Steps:
        return between.allgather(host, pieces)

    for host, entries in enumerate(play(scatter, size, count).entries):
        begin, end = pieces[host]
        assert all(sorted(entry) == list(range(size)) for entry in entries[begin:end])
    found = play(gather, size, count)
    wanted = [(host,) for host, length in enumerate(lengths) for _ in range(length)]
    assert all(entries == wanted for entries in found.entries)
    assert found.sent == [count - lengths[(host + 1) % size] for host in range(size)]


@given(sizes)
def test_after_a_barrier_every_host_has_heard_of_every_other(size: int) -> None:
    heard = [{host} for host in range(size)]
    plans = [between.barrier(host, size) for host in range(size)]
    for turn in range(max(map(len, plans))):
        before = [set(each) for each in heard]
        for host, plan in enumerate(plans):
            ((source, _),) = plan[turn].receives
            assert plans[source][turn].sends[0].host == host
            heard[host] |= before[source]
    assert all(each == set(range(size)) for each in heard)


@given(st.integers(0, 9), st.integers(0, 60), st.integers(1, 9))
def test_parts_differ_by_one_entry_at_most(begin: int, length: int, parts: int) -> None:
    found = split((begin, begin + length), parts)
    lengths = [end - first for first, end in found]
    assert len(found) == parts and sum(lengths) == length and max(lengths) - min(lengths) <= 1
    assert found[0][0] == begin and found[-1][1] == begin + length


@pytest.mark.parametrize(
    ("name", "size", "nbytes", "algorithm"),
    [
        ("auto", 4, 8, between.doubling_allreduce),
        ("auto", 4, 1 << 19, between.rabenseifner_allreduce),
        ("auto", 4, 1 << 20, between.ring_allreduce),
        ("auto", 8, 1 << 20, between.rabenseifner_allreduce),
        ("auto", 6, 1 << 20, between.ring_allreduce),
        ("tree", 4, 1 << 20, between.tree_allreduce),
    ],
)
def test_an_algorithm_is_the_named_one_or_follows_from_the_length(
    name: str, size: int, nbytes: int, algorithm: object
) -> None:
    assert between.of_allreduce(name, size, nbytes) is algorithm


@pytest.mark.parametrize(
    ("name", "size", "slices", "is_tree"),
    [
        ("auto", 4, 1, True),  # two rounds, or three hops
        ("auto", 4, 2, False),
        ("auto", 8, 2, True),
        ("auto", 8, 4, False),
        ("auto", 2, 1, False),
        ("tree", 4, 16, True),
        ("ring", 4, 1, False),
    ],
)
def test_few_slices_take_a_tree_and_many_a_chain(
    name: str, size: int, slices: int, is_tree: bool
) -> None:
    expected = TREE if is_tree else CHAIN
    for root in range(size):
        bcast, reduce = (
            of(name, size, root, slices) for of in (between.of_bcast, between.of_reduce)
        )
        assert bcast(0, size, 8) == expected[0](0, size, 8, root=root)
        assert reduce(0, size, 8) == expected[1](0, size, 8, root=root)
