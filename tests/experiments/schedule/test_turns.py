"""Arms take turns in random order, as many each; what one lacks costs the others nothing."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.measure.orders import line_of, orders_of
from experiments.model.launch import Measurement
from experiments.schedule import turns
from experiments.schedule.turns import Action, Answer, Lost, Order, conduct

QUICK = Measurement(time_cap=0.01, min_iterations=10, max_iterations=1000)
USUAL = Answer(1e-4)


class Recorded:
    """Arms that note every order, in one common list."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, Order]] = []

    def arm(
        self,
        name: str,
        answer: Answer | Callable[[Order], Answer] = USUAL,
        fails: Callable[[Order], bool] = lambda _: False,
    ) -> turns.Arm:
        def carry_out(orders: Sequence[Order]) -> list[Answer]:
            self.orders += [(name, order) for order in orders]
            if any(map(fails, orders)):
                raise Lost(f"{name} is lost")
            return [answer(order) if callable(answer) else answer for order in orders]

        return carry_out

    def of(self, action: Action, cell: int) -> list[str]:
        return [name for name, order in self.orders if (order.action, order.cell) == (action, cell)]


def alone(cells: int) -> list[range]:
    """As many contests of one cell each."""
    return turns.numbers(["x"] * cells)


def conducted(arms: dict[str, Answer], cells: int = 1, asked: Measurement = QUICK) -> Recorded:
    """What arms that answer so were asked, in as many contests of one cell each."""
    seen = Recorded()
    recording = {name: seen.arm(name, answer) for name, answer in arms.items()}
    assert conduct(recording, alone(cells), asked, random.Random(1)) == {}
    return seen


def test_every_arm_has_every_cell_and_as_many_turns_of_as_many_operations() -> None:
    seen, shares = Recorded(), []
    arms = {name: seen.arm(name) for name in ("host", "again", "docker")}
    assert conduct(arms, alone(3), QUICK, random.Random(1), shares.append) == {}
    for cell in range(3):
        assert sorted(seen.of(Action.BEGIN, cell)) == sorted(seen.of(Action.END, cell))
        taken = Counter(seen.of(Action.TURN, cell))
        assert set(taken) == set(arms) and len(set(taken.values())) == 1
        assert taken["host"] >= turns.FEWEST_ROUNDS
    assert {(order.count, order.group) for _, order in seen.orders if order.count} == {(10, 1)}
    assert [order.action for _, order in seen.orders[-3:]] == [Action.LEAVE] * 3
    assert shares == [0, 1 / 3, 2 / 3]


def test_rounds_visit_all_arms_in_orders_that_differ() -> None:
    names = ("a", "b", "c")
    seen = conducted(dict.fromkeys(names, USUAL), cells=4)
    taken = [seen.of(Action.TURN, cell) for cell in range(4)]
    rounds = [tuple(arms[i : i + 3]) for arms in taken for i in range(0, len(arms), 3)]
    assert all(sorted(arms) == sorted(names) for arms in rounds)
    assert len(set(rounds)) > 3


def test_one_group_and_one_count_serve_all_arms_of_a_cell() -> None:
    seen = conducted({"quick": Answer(2e-7, 8), "slow": Answer(2e-3, 1)})
    orders = {(order.count, order.group) for _, order in seen.orders if order.action is Action.TURN}
    ((count, group),) = orders
    assert group == 8
    assert count * group * 2e-3 <= turns.TURN + 2e-3 * group


def test_an_interval_has_as_many_operations_as_in_other_blocks() -> None:
    seen, asked = Recorded(), []

    def agreed(contest: int, needed: int) -> int:
        asked.append((contest, needed))
        return 4

    arms = {"host": seen.arm("host", Answer(2e-7, 2))}
    assert conduct(arms, alone(2), QUICK, random.Random(1), agreed=agreed) == {}
    assert asked == [(0, 2), (1, 2)]
    assert {order.group for _, order in seen.orders if order.action is Action.TURN} == {4}


def test_ranks_start_from_one_barrier_in_all_arms_that_can_measure_the_cell() -> None:
    for other in (True, False):
        tight, answer = Answer(1e-4, tight=True), Answer(1e-4, tight=other)
        seen = conducted({"host": tight, "docker": answer, "lacking": Answer(0)})
        turns = [order for _, order in seen.orders if order.action is Action.TURN]
        assert {order.tight for order in turns} == {other}
        assert all(orders_of(line_of([order])) == [order] for order in turns)


def test_an_arm_that_is_lost_is_asked_nothing_more_and_the_others_go_on() -> None:
    for action in Action:
        seen = Recorded()
        bad = seen.arm("bad", fails=lambda order, action=action: order.action is action)
        arms = {"good": seen.arm("good"), "bad": bad}
        lost = conduct(arms, alone(2), QUICK, random.Random(1))
        assert [(name, str(why)) for name, why in lost.items()] == [("bad", "bad is lost")], action
        asked = [order.action for name, order in seen.orders if name == "bad"]
        assert asked.count(action) == 1 and asked[-1] is action
        assert set(seen.of(Action.END, 1)) >= {"good"}, action


def test_nothing_is_left_to_do_where_all_are_lost() -> None:
    seen = Recorded()
    arms = {"a": seen.arm("a", fails=lambda _: True)}
    assert set(conduct(arms, alone(3), QUICK, random.Random(1)))
    assert len(seen.orders) == 1


def test_a_cell_ends_early_where_all_medians_are_known_and_at_the_cap() -> None:
    long = Measurement(time_cap=10, min_iterations=10, max_iterations=10**6)
    short = Measurement(time_cap=1e-9, min_iterations=turns.FEWEST_ROUNDS, max_iterations=10**6)
    for arms, fewest in ((("a",), 1), (("a", "b"), turns.FEWEST_ROUNDS)):
        for answer, asked in ((Answer(1e-3, narrow=True), long), (USUAL, short)):
            seen = conducted(dict.fromkeys(arms, answer), asked=asked)
            assert Counter(seen.of(Action.TURN, 0)) == dict.fromkeys(arms, fewest), asked


def test_slow_operations_have_as_many_iterations_as_were_asked_for_whatever_the_cap() -> None:
    asked = Measurement(time_cap=1e-9, min_iterations=10, max_iterations=1000)
    seen = conducted(dict.fromkeys(("a", "b"), Answer(0.5, narrow=True)), asked=asked)
    assert {order.count for _, order in seen.orders if order.action is Action.TURN} == {1}
    assert Counter(seen.of(Action.TURN, 0)) == {"a": 10, "b": 10}


@given(st.floats(1e-7, 1.0), st.floats(1e-3, 2.0), st.integers(1, 100), st.integers(0, 10**4))
def test_the_turns_hold_what_was_asked_for(
    seconds: float, cap: float, least: int, more: int
) -> None:
    asked = Measurement(time_cap=cap, min_iterations=least, max_iterations=least + more)
    counts, fewest, rounds = turns._dealt({7: seconds, 8: 2 * seconds}, asked, alone=False)
    assert 1 <= rounds <= turns.MOST_ROUNDS and fewest >= turns.FEWEST_ROUNDS
    assert min(counts.values()) * fewest >= asked.min_iterations
    for count, duration in ((counts[7], seconds), (counts[8], 2 * seconds)):
        assert count * rounds <= asked.max_iterations
        assert count == 1 or (count - 1) * duration < turns.TURN
    counts, fewest, rounds = turns._dealt({7: seconds}, asked, alone=True)
    assert counts == {7: least} and fewest == 1 <= rounds
    assert least * rounds <= asked.max_iterations


@pytest.fixture
def contested() -> list[tuple[str, Order]]:
    """The orders to two arms that contest a quick cell 1 and a slow cell 2; cell 0 is alone."""
    seen = Recorded()
    answers = (USUAL, Answer(1e-6, 4), Answer(1e-4, 1), USUAL)  # the last one to LEAVE
    arms = {name: seen.arm(name, lambda order: answers[order.cell]) for name in ("a", "b")}
    contests = turns.numbers([("copy",), ("direct", "mpi")])
    assert contests == [range(1), range(1, 3)]
    conduct(arms, contests, QUICK, random.Random(1))
    return [(name, order) for name, order in seen.orders if order.cell > 0]


def test_an_arm_times_a_whole_contest_in_its_turn(contested: list[tuple[str, Order]]) -> None:
    taken = [(name, order.cell) for name, order in contested if order.action is Action.TURN]
    rounds = [taken[i : i + 4] for i in range(0, len(taken), 4)]
    assert all(len(set(pairs)) == 4 for pairs in rounds) and len({*map(tuple, rounds)}) > 3
    assert all(pairs[0][0] == pairs[1][0] for pairs in rounds), "an arm times its cells in one turn"
    actions = [order.action for _, order in contested]
    assert actions[:4] == [Action.BEGIN] * 4 and actions[-4:] == [Action.END] * 4


def test_cells_of_a_contest_have_counts_and_one_group(contested: list[tuple[str, Order]]) -> None:
    orders = [order for _, order in contested if order.action is Action.TURN]
    counts = {order.cell: order.count for order in orders}
    assert counts[1] > counts[2]
    assert {order.group for order in orders} == {4}


def test_a_cell_that_an_arm_has_not_is_measured_by_those_that_have_it() -> None:
    seen = Recorded()
    some = seen.arm("some", lambda order: Answer() if order.cell == 1 else USUAL)
    conduct({"all": seen.arm("all"), "some": some}, [range(2)], QUICK, random.Random(1))
    for name, cells in (("all", {0, 1, turns.NONE}), ("some", {0, turns.NONE})):
        asked = [order for arm, order in seen.orders if arm == name]
        assert {order.cell for order in asked if order.action is not Action.BEGIN} == cells


def test_a_turn_lasts_ten_milliseconds_in_the_fastest_arm_too() -> None:
    for seconds, pace in product((1e-7, 1.7e-6, 1e-4, 3e-3, 0.5), (0.0, 5e-6)):
        fast, slow = Answer(seconds, pace=pace), Answer(2 * seconds, pace=2 * pace)
        seen = conducted({"fast": fast, "slow": slow})
        (order,) = {order for _, order in seen.orders if order.action is Action.TURN}
        interval = max(seconds, pace)
        intervals = order.count * (1 + order.between)
        assert intervals * interval >= turns.LEAST * (1 - 1e-9), (seconds, pace)
        longer = intervals - order.count  # with one interval less before each timed one
        assert not order.between or longer * interval < turns.LEAST * (1 + 1e-9), (seconds, pace)


def test_the_cells_of_a_turn_share_it_and_arms_that_lack_some_have_ten_milliseconds_too() -> None:
    seen = Recorded()
    arms = {
        "all": seen.arm("all"),
        "some": seen.arm("some", lambda order: Answer() if order.cell == 2 else USUAL),
    }
    conduct(arms, [[0, 1, 2]], QUICK, random.Random(1))
    orders = {
        order for name, order in seen.orders if name == "some" and order.action is Action.TURN
    }
    shares = {order.cell: order.count * (1 + order.between) * USUAL.seconds for order in orders}
    assert shares == pytest.approx({0: turns.LEAST / 2, 1: turns.LEAST / 2})


def test_an_arm_without_company_times_every_interval() -> None:
    seen = conducted({"host": Answer(1e-6)})
    assert {order.between for _, order in seen.orders} == {0}
