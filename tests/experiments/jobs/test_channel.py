"""A launch's orders are for its ranks alone: no other user reads, writes or sees its pipes."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.jobs import channel
from experiments.jobs.channel import Channel, Pipes
from experiments.measure import lines
from experiments.measure.orders import TURN
from experiments.results import store
from experiments.schedule.turns import NONE, Action, Answer, Lost, Order
from tests.second_user import SecondUser

OPENED = 'for path; do if test -r "$path" -o -w "$path"; then echo "$path"; fi; done'


def test_pipes_and_their_folder_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with store.incoming(tmp_path / "out", "0000-host") as place, Pipes(place, 2):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()}
            assert modes == {"orders.0": 0o600, "orders.1": 0o600, "answers": 0o600}
            assert stat.S_IMODE(place.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_another_user_opens_no_pipe(second_user: SecondUser, shared_by_users: Path) -> None:
    with store.incoming(shared_by_users, "0000-host") as place, Pipes(place, 2):
        paths = sorted(place.iterdir())
        words = ["sh", "-c", OPENED, "sh", *map(str, paths)]
        assert len(paths) == 3 and second_user.run(words).stdout == ""
        place.chmod(0o755)  # the pipes are private on their own as well
        assert second_user.run(words).stdout == ""
        paths[0].chmod(0o644)
        assert second_user.run(words).stdout == f"{paths[0]}\n"  # it would be seen


def test_a_rank_that_puts_something_in_its_pipes_place_gets_no_orders(tmp_path: Path) -> None:
    """Where the driver is root, a launch's folder belongs to its ranks in a container."""
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    for put in (os.symlink, shutil.copy, lambda _, pipe: pipe.mkdir(), lambda *_: None):
        with store.incoming(tmp_path / "out", "0000-docker") as place, Pipes(place, 1) as ends:
            pipe = place / "orders.0"
            assert not ends.connect()
            pipe.unlink()
            put(precious, pipe)
            with pytest.raises(Lost, match=r"was ended, its pipe orders\.0 (has gone|is none)"):
                ends.connect()
                ends.send("order")
            shutil.rmtree(place)
            with pytest.raises(FileNotFoundError):
                ends.connect()
        assert precious.read_text() == "as it was", put


RANK = """
import sys, time
from pathlib import Path
from experiments.measure.orders import obey
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
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, does: str = "works") -> None:
        self.processes = [
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
        for rank, process in enumerate(self.processes):
            if process.poll() is not None:
                raise Lost(f"rank {rank} ended with {process.returncode}")


@pytest.fixture(params=[False, True], ids=["pipes", "sockets"])
def over_nodes(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def ranks(over_nodes: bool, tmp_path: Path) -> Iterator[Ranks]:
    made = Ranks(tmp_path, over_nodes)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


def test_ranks_carry_out_orders_in_turn_note_the_cell_and_sleep_meanwhile(ranks: Ranks) -> None:
    with ranks.channel() as orders:
        assert orders.at() == NONE
        ranks.start()
        orders.open()
        for cell in range(20):
            answer = orders.ask([Order(Action.TURN, cell, 5, 2)])
            assert answer == [Answer(seconds=cell, group=2)]  # rank 0's
        several = [Order(Action.TURN, cell, 5, 2) for cell in (7, 3, 5)]
        assert [answer.seconds for answer in orders.ask(several)] == [7, 3, 5]
        assert orders.at() == 5
        time.sleep(0.3)
        orders.ask([Order(Action.LEAVE)])
        for process in ranks.processes:
            assert process.communicate(timeout=10) == ("left True True\n", "")
            assert process.returncode == 0
        assert orders.at() == NONE


def test_ranks_end_with_the_driver_that_they_wait_for(ranks: Ranks) -> None:
    with ranks.at_work() as orders:
        orders.ask([Order(Action.BEGIN, 0)])
    for process in ranks.processes:
        _, output = process.communicate(timeout=10)
        assert process.returncode == 1
        assert output == "the driver of this campaign has ended\n"


def test_a_rank_that_dies_is_not_waited_for(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "TURN_PATIENCE", 1e6)
    with ranks.at_work("dies") as orders:
        with pytest.raises(Lost, match="rank 1 ended with 3"):
            orders.ask([Order(Action.TURN, 0)])
        with pytest.raises(Lost):
            orders.ask([Order(Action.TURN, 1)])


def test_slow_operations_have_their_time(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "TURN_PATIENCE", 0.0)
    monkeypatch.setattr(channel, "LOOK", 0.1)
    with ranks.at_work("dawdles") as orders:
        orders.ask([Order(Action.BEGIN, 1)])  # rank 0 says: 1 s
        assert orders.ask([Order(Action.TURN, 1)])[0].seconds == 1


def test_a_rank_that_hangs_is_given_up(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "TURN_PATIENCE", 1.0)
    with ranks.at_work("hangs") as orders, pytest.raises(Lost, match="does not answer"):
        orders.ask([Order(Action.TURN, 0)])


def test_a_launch_that_does_not_begin_or_ends_before_is_reported_so(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, over_nodes=False)
    with Channel(tmp_path, 2, ranks.check, patience=0.2) as orders:
        with pytest.raises(Lost, match="did not start within 0 s"):
            orders.open()
        ranks.processes = [subprocess.Popen(["false"], text=True)]
        ranks.processes[0].wait()
        with pytest.raises(Lost, match="rank 0 ended with 1"):
            orders.open()


FIT = '{"rank": 0, "answers": [{}]}'
"""Answer's fields have defaults."""


def babble(folder: Path, line: bytes) -> None:
    """Rank 0 of someone who is in the launch's container: it answers an order with any bytes."""
    with contextlib.suppress(OSError), lines.opened(folder, 0) as (orders, answers):
        orders.readline()
        os.write(answers.fileno(), line)
        orders.readline()


def test_what_is_no_answer_is_the_loss_of_its_launch_and_no_other_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, over_nodes: bool
) -> None:
    monkeypatch.setattr(lines, "LONGEST", 1000)
    other_rank = FIT.replace("0", "1").encode()
    for number, line in enumerate((b"\n", b"\xff\n", other_rank + b"\n", b"x" * 2000)):
        why = r"is no answer|decode" if line.endswith(b"\n") else "a line has more than 1,000 bytes"
        folder = tmp_path / str(number)
        folder.mkdir()
        with Channel(folder, 1, lambda: None, over_nodes=over_nodes) as orders:
            threading.Thread(target=babble, args=(folder, line), daemon=True).start()
            orders.open()
            with pytest.raises(Lost, match=rf"gives wrong answers: .*({why})") as lost:
                orders.ask([Order(Action.BEGIN, 0)])
            assert str(lost.value).isprintable(), line


def test_a_rank_that_answers_twice_is_given_up(tmp_path: Path) -> None:
    with Channel(tmp_path, 2, lambda: None) as orders, contextlib.ExitStack() as ranks:
        for rank in (0, 1):
            end = os.open(tmp_path / lines.pipe_of(rank), os.O_RDONLY | os.O_NONBLOCK)
            ranks.callback(os.close, end)
        orders.open()
        (tmp_path / lines.ANSWERS).write_text(f"{FIT}\n{FIT}\n")
        with pytest.raises(Lost, match="rank 0 answers more than it is asked"):
            orders.ask([Order(Action.BEGIN, 0)])


def test_a_record_of_the_turn_that_is_none_is_that_of_no_turn(tmp_path: Path) -> None:
    record, other = tmp_path / TURN, tmp_path / "other"
    other.write_text("7")
    with Channel(tmp_path, 1, lambda: None) as orders:
        for make in (
            lambda: record.write_text("x"),
            lambda: record.write_text("7" * 1000),
            lambda: record.symlink_to(other),
            lambda: os.mkfifo(record),
        ):
            make()
            assert orders.at() == NONE
            record.unlink()
