"""Algorithms between hosts, played through without any: what each ends with, and what it costs."""

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.quantities import KIB, MIB
from hbmcomm.transports.native import lib
from tests.hbmcomm.hierarchical.steps import Algorithm, Message, Range, Steps, algorithm

Entry = tuple[int, ...]
"""The hosts that contribute to an entry, in the order of the operands."""

ALLREDUCE = ("RING", "DOUBLING", "RABENSEIFNER", "TREE", "ONE_SHOT")
TREE, CHAIN, FAN = (
    (algorithm(bcast), algorithm(reduce))
    for bcast, reduce in (
        ("TREE_BCAST", "TREE_REDUCE"),
        ("CHAIN_BCAST", "CHAIN_REDUCE"),
        ("FAN_OUT", "FAN_IN"),
    )
)

sizes = st.integers(2, 17)
counts = st.integers(0, 40)


class Played:
    """Every host's entries after all steps, and what each host sent."""

    def __init__(self, plans: list[Steps], entries: list[list[Entry]]) -> None:
        self.entries = entries
        self.sent = [sum(_length(sent) for step in plan for sent in step.sends) for plan in plans]
        self.messages = sum(len(step.sends) for plan in plans for step in plan)
        self.rounds = max(map(len, plans))
        self._wires: dict[tuple[int, int], deque[tuple[list[Entry], bool]]] = defaultdict(deque)
        hosts = [self._play(host, plan) for host, plan in enumerate(plans)]
        for _ in range(4 * (self.rounds + 1) * len(hosts)):
            hosts = [host for host in hosts if next(host, "over") != "over"]
        assert not hosts, "hosts wait for messages that nobody sends"
        assert not any(self._wires.values()), "a message that nobody takes"

    def _play(self, host: int, plan: Steps):  # type: ignore[no-untyped-def]
        own = self.entries[host]
        for step in plan:
            for to, (begin, end) in step.sends:
                self._wires[host, to].append((own[begin:end], step.answered))
            yield
            arrived: dict[int, list[Entry]] = {}
            for source, (begin, end) in step.receives:
                while not self._wires[source, host]:
                    yield
                came, is_answered = self._wires[source, host].popleft()
                assert len(came) == end - begin and is_answered == step.answered
                if step.folds:
                    arrived[source] = came
                else:
                    own[begin:end] = came
            if arrived:
                arrived[host] = own[begin:end]
                in_order = [arrived[source] for source in sorted(arrived)]
                own[begin:end] = [sum(parts, ()) for parts in zip(*in_order, strict=True)]


def _length(message: Message) -> int:
    return message.entries[1] - message.entries[0]


def play(algorithm: Callable[[int, int, int], Steps], size: int, count: int) -> Played:
    plans = [algorithm(host, size, count) for host in range(size)]
    return Played(plans, [[(host,)] * count for host in range(size)])


@given(st.sampled_from(ALLREDUCE), sizes, counts)
def test_an_allreduce_gives_all_hosts_the_same_numbers_in_the_same_order(
    name: str, size: int, count: int
) -> None:
    by_host = play(algorithm(name), size, count).entries
    assert all(entries == by_host[0] for entries in by_host)
    assert all(sorted(entry) == list(range(size)) for entry in by_host[0])


@pytest.mark.parametrize("algorithms", [TREE, CHAIN, FAN])
@given(sizes, st.integers(1, 40), st.data())
def test_from_a_root_and_to_a_root_each_other_host_takes_one_message(
    algorithms: tuple[Algorithm, Algorithm], size: int, count: int, data: st.DataObject
) -> None:
    root = data.draw(st.integers(0, size - 1))
    bcast, reduce = (play(partial(of, root=root), size, count) for of in algorithms)
    assert all(entries == [(root,)] * count for entries in bcast.entries)
    assert all(sorted(entry) == list(range(size)) for entry in reduce.entries[root])
    assert bcast.messages == reduce.messages == size - 1


@given(sizes)
def test_in_a_tree_a_host_serves_the_next_one_once_the_last_has_answered(size: int) -> None:
    for host in range(size):
        served = [step.answered for step in TREE[0](host, size, 1) if step.sends]
        assert served == [True] * (len(served) - 1) + [False] * bool(served)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=9))
def test_rings_reduce_and_gather_pieces_of_any_lengths(lengths: list[int]) -> None:
    ends = [sum(lengths[: host + 1]) for host in range(len(lengths))]
    pieces: list[Range] = [(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    size, count = len(pieces), ends[-1]

    scatter = algorithm("RING_SCATTER", pieces=pieces)
    gather = algorithm("RING_GATHER", pieces=pieces)
    for host, entries in enumerate(play(scatter, size, count).entries):
        begin, end = pieces[host]
        assert all(sorted(entry) == list(range(size)) for entry in entries[begin:end])
    played = play(gather, size, count)
    wanted = [(host,) for host, length in enumerate(lengths) for _ in range(length)]
    assert all(entries == wanted for entries in played.entries)
    assert played.sent == [count - lengths[(host + 1) % size] for host in range(size)]


@given(sizes)
def test_after_a_barrier_every_host_has_heard_of_every_other(size: int) -> None:
    heard = [{host} for host in range(size)]
    barrier = algorithm("MEET")
    plans = [barrier(host, size, 1) for host in range(size)]
    for turn in range(max(map(len, plans))):
        before = [set(hosts) for hosts in heard]
        for host, plan in enumerate(plans):
            for source, _ in plan[turn].receives:
                assert host in [to for to, _ in plans[source][turn].sends]
                heard[host] |= before[source]
    assert all(hosts == set(range(size)) for hosts in heard)


def number(name: str) -> int:
    """The core's number of an algorithm."""
    return int(getattr(lib, f"HBM_{name}"))


def test_an_algorithm_is_the_named_one_or_follows_from_the_length() -> None:
    for asked, size, nbytes, name in (
        ("AUTO", 4, 8, "ONE_SHOT"),
        ("AUTO", 64, 8, "DOUBLING"),
        ("AUTO", 8, 4096, "DOUBLING"),
        ("AUTO", 4, 1 << 16, "RABENSEIFNER"),
        ("AUTO", 4, 1 << 17, "RING"),
        ("AUTO", 8, 1 << 17, "RABENSEIFNER"),
        ("AUTO", 8, 1 << 18, "RING"),
        ("AUTO", 6, 1 << 20, "RING"),
        ("TREE", 4, 1 << 20, "TREE"),
    ):
        chosen = lib.hbm_choose_allreduce(number(asked), size, nbytes)
        assert chosen == number(name), (asked, size, nbytes)


def test_few_slices_take_a_tree_and_many_a_chain() -> None:
    for name, size, slices, kind in (
        ("AUTO", 4, 1, "TREE"),  # two rounds, or three hops
        ("AUTO", 4, 2, "CHAIN"),
        ("AUTO", 8, 2, "TREE"),
        ("AUTO", 8, 4, "CHAIN"),
        ("AUTO", 2, 1, "CHAIN"),
        ("TREE", 4, 16, "TREE"),
        ("RING", 4, 1, "CHAIN"),
    ):
        case = number(name), size, slices << 20, slices
        assert lib.hbm_choose_bcast(*case) == number(f"{kind}_BCAST"), (name, size, slices)
        assert lib.hbm_choose_reduce(*case) == number(f"{kind}_REDUCE"), (name, size, slices)


def test_short_messages_from_and_to_one_host_go_in_one_shot() -> None:
    assert lib.hbm_choose_bcast(lib.HBM_AUTO, 4, 1024, 1) == lib.HBM_FAN_OUT
    assert lib.hbm_choose_reduce(lib.HBM_AUTO, 4, 1024, 1) == lib.HBM_FAN_IN
    assert lib.hbm_choose_bcast(lib.HBM_AUTO, 64, 1024, 1) == lib.HBM_TREE_BCAST


SPLIT, WHOLE = 0, 1


def lengths(nbytes: int, hosts: int, how: int, segment: int = 0) -> int:
    """Bytes of the slices of a message, rounded up."""
    return -(-nbytes // lib.hbm_slices(nbytes, 1, 1, hosts, how, segment))


def test_slices_that_go_whole_do_not_grow_with_the_hosts() -> None:
    for hosts in (2, 8, 64):
        assert lengths(1 * MIB, hosts, WHOLE) == 128 * KIB, hosts
        assert lengths(64 * MIB, hosts, WHOLE) == 512 * KIB, hosts
        assert lengths(1 * MIB, hosts, WHOLE, KIB) == 32 * KIB, hosts
        assert lengths(64 * MIB, hosts, WHOLE, 64 * MIB) == 4 * MIB, hosts


def test_each_host_has_enough_of_a_slice_that_is_split() -> None:
    for hosts, kib in ((2, 512), (8, 512), (16, 512), (64, 2048)):
        assert lengths(2 * MIB, hosts, SPLIT) == kib * KIB, hosts
        assert lengths(16 * MIB, hosts, SPLIT) == 2 * MIB, hosts


def test_the_last_slice_is_not_shorter_than_the_others() -> None:
    assert lib.hbm_slices(2 * MIB + 4, 1, 1, 4, SPLIT, 0) == 4
    assert lib.hbm_slices(513 * KIB, 1, 1, 4, SPLIT, 0) == 2
    assert lib.hbm_slices(0, 1, 1, 4, SPLIT, 0) == 1
