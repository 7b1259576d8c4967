"""Orders reach every rank, answers come back, and a lost rank is noticed at once."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.jobs import channel
from experiments.jobs.channel import Channel
from experiments.programs.measure.lines import ANSWERS, pipe_of
from experiments.programs.measure.orders import TURN
from experiments.schedule.turns import NONE, Action, Answer, Lost, Order

RANK = """
import sys, time
from pathlib import Path
from experiments.programs.measure.orders import obey
from experiments.schedule.turns import NONE, Action, Answer
folder, rank, does = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def carry_out(order):
    if order.action is Action.TURN and rank == 1:
        if does == "dies":
            sys.exit(3)
        if does != "works":
            time.sleep(600 if does == "hangs" else 1)
    return Answer(seconds=order.cell + rank / 10, group=order.group)
asleep = obey(folder, rank, carry_out)
print("left", asleep["seconds"] > 0.2, asleep["cpu"] < asleep["seconds"] / 4)
"""


class Ranks:
    """Two processes that take orders as ranks do."""

    def __init__(self, folder: Path, over_nodes: bool) -> None:
        self.folder, self.over_nodes = folder, over_nodes
        self.each: list[subprocess.Popen[str]] = []

    def start(self, does: str = "works") -> None:
        self.each = [
            subprocess.Popen(
                [sys.executable, "-c", RANK, str(self.folder), str(rank), does],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in (0, 1)
        ]

    @contextlib.contextmanager
    def at_work(self, does: str = "works") -> Iterator[Channel]:
        """Their channel, once both wait for orders."""
        with self.channel() as orders:
            self.start(does)
            orders.open()
            yield orders

    def channel(self) -> Channel:
        return Channel(self.folder, 2, self.check, over_nodes=self.over_nodes)

    def check(self) -> None:
        for rank, process in enumerate(self.each):
            if process.poll() is not None:
                raise Lost(f"rank {rank} ended with {process.returncode}")


@pytest.fixture(params=[False, True], ids=["pipes", "sockets"])
def ranks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ranks]:
    made = Ranks(tmp_path, request.param)
    yield made
    for process in made.each:
        process.kill()
        process.communicate()


def test_all_ranks_carry_out_each_order_and_sleep_meanwhile(ranks: Ranks) -> None:
    with ranks.at_work() as orders:
        for cell in range(20):
            answer = orders.ask([Order(Action.TURN, cell, 5, 2)])
            assert answer == [Answer(seconds=cell, group=2)]  # rank 0's
        time.sleep(0.3)
        orders.ask([Order(Action.LEAVE)])
        output = [process.communicate(timeout=10) for process in ranks.each]
    assert [
        (process.returncode, *each) for process, each in zip(ranks.each, output, strict=True)
    ] == [(0, "left True True\n", "")] * 2


def test_several_orders_are_carried_out_in_their_order_and_it_is_noted_whose_turn_it_is(
    ranks: Ranks,
) -> None:
    with ranks.channel() as orders:
        assert orders.at() == NONE
        ranks.start()
        orders.open()
        given = [Order(Action.TURN, cell, 5, 2) for cell in (7, 3, 5)]
        assert [answer.seconds for answer in orders.ask(given)] == [7, 3, 5]
        assert orders.at() == 5
        orders.ask([Order(Action.LEAVE)])
        for process in ranks.each:
            process.communicate(timeout=10)
        assert orders.at() == NONE


def test_ranks_end_with_the_driver_that_they_wait_for(ranks: Ranks) -> None:
    with ranks.at_work() as orders:
        orders.ask([Order(Action.BEGIN, 0)])
    for process in ranks.each:
        _, output = process.communicate(timeout=10)
        assert process.returncode == 1
        assert output == "the driver of this campaign has ended\n"


def test_a_rank_that_dies_in_its_turn_is_noticed_at_once(ranks: Ranks) -> None:
    with ranks.at_work("dies") as orders:
        began = time.monotonic()
        with pytest.raises(Lost, match="rank 1 ended with 3"):
            orders.ask([Order(Action.TURN, 0)])
        assert time.monotonic() - began < 5 * channel.LOOK
        with pytest.raises(Lost):
            orders.ask([Order(Action.TURN, 1)])


def test_a_turn_of_slow_operations_is_given_the_time_that_they_take(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "TURN_PATIENCE", 0.0)
    monkeypatch.setattr(channel, "LOOK", 0.1)
    with ranks.at_work("dawdles") as orders:
        orders.ask([Order(Action.BEGIN, 1)])  # rank 0 says: 1 s
        assert orders.ask([Order(Action.TURN, 1)])[0].seconds == 1


def test_a_rank_that_hangs_is_waited_for_no_longer_than_it_may_take(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "TURN_PATIENCE", 1.0)
    with ranks.at_work("hangs") as orders, pytest.raises(Lost, match="does not answer"):
        orders.ask([Order(Action.TURN, 0)])


def test_a_launch_that_never_waits_for_orders_is_reported_so(ranks: Ranks) -> None:
    with (
        Channel(ranks.folder, 2, ranks.check, patience=0.2) as orders,
        pytest.raises(Lost, match="did not start within 0 s"),
    ):
        orders.open()


def test_a_launch_that_ends_before_it_waits_is_noticed(ranks: Ranks) -> None:
    with Channel(ranks.folder, 2, ranks.check) as orders:
        ranks.each = [subprocess.Popen(["false"], text=True)]
        with pytest.raises(Lost, match="rank 0 ended with 1"):
            orders.open()


@pytest.mark.parametrize(
    "line",
    [
        *("x", "[" * 9999, "[1]", "{}"),
        '{"rank": 9, "answers": [{}]}',
        '{"rank": 0, "answers": 5}',
        '{"rank": 0, "answers": []}',
        '{"rank": 0, "answers": [{"weather": 1}]}',
        '{"rank": 0, "answers": [{"seconds": Infinity}]}',
        '{"rank": 0, "answers": [{"group": -1}]}',
        '{"rank": 0, "answers": [{"narrow": "yes"}]}',
        "\udcff",
    ],
)
def test_a_line_that_no_rank_writes_loses_the_launch(tmp_path: Path, line: str) -> None:
    with Channel(tmp_path, 1, lambda: None) as orders:
        rank = os.open(tmp_path / pipe_of(0), os.O_RDONLY | os.O_NONBLOCK)
        orders.open()
        with (tmp_path / ANSWERS).open("wb") as answers:
            answers.write(f"{line}\n".encode(errors="surrogateescape"))
        with pytest.raises(Lost, match=r"answers '.*', which no rank does"):
            orders.ask([Order(Action.TURN, 0, 5, 2)])
        os.close(rank)


@pytest.mark.parametrize("kind", ["pipe", "words", "number"])
def test_a_turn_that_no_rank_writes_is_none(tmp_path: Path, kind: str) -> None:
    with Channel(tmp_path, 1, lambda: None) as orders:
        if kind == "pipe":
            os.mkfifo(tmp_path / TURN)
        else:
            (tmp_path / TURN).write_text({"words": "mine", "number": "9" * 5000}[kind])
        assert orders.at() == NONE
