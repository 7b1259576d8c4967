"""One seed, one schedule; every block holds each MPI once."""

import json
from dataclasses import replace

from experiments.bench.names import FORMS
from experiments.bench.question import Question, ask
from experiments.bench.schedule import Launch, LeftOut, schedule
from experiments.bench.settings import settings
from experiments.environments.mpiexec import FLAVOURS

ASKED = ask(4, operations="Allreduce,Barrier,Bcast", sizes="1KiB:4KiB", ranks="2,4", blocks=5)


def test_each_block_holds_each_mpi_once_with_one_rank_count() -> None:
    launches = schedule(ASKED, 1)
    assert len(launches) == 5 * 2 * len(FLAVOURS)
    assert len({launch.name for launch in launches}) == len(launches)
    for number in range(10):
        block = launches[number * 3 : number * 3 + 3]
        assert {launch.block for launch in block} == {number}
        assert len({launch.ranks for launch in block}) == 1
        assert {launch.flavour for launch in block} == set(FLAVOURS)


def test_the_seed_decides_every_order() -> None:
    one, again, other = (schedule(ASKED, seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert len({tuple(launch.flavour for launch in one[i : i + 3]) for i in range(0, 30, 3)}) > 1
    assert len({launch.cells for launch in one}) > 1


def test_a_barrier_has_no_sizes() -> None:
    for launch in schedule(ASKED, 1):
        assert sorted(launch.cells) == [
            *(("allreduce", size) for size in (1024, 2048, 4096)),
            ("barrier", 0),
            *(("bcast", size) for size in (1024, 2048, 4096)),
        ]


def test_whom_direct_meets_is_what_was_asked() -> None:
    def peers(asked: Question) -> set[tuple[str, ...]]:
        return {launch.peers for launch in schedule(asked, 1)}

    assert peers(ASKED) == {("mpi", "pickle", "gloo")}
    assert peers(replace(ASKED, peers=("mpich", "pickle"))) == {("mpi", "pickle")}
    assert peers(replace(ASKED, peers=("pickle",))) == {("pickle",)}


def test_tuned_each_block_holds_each_mpi_in_each_setting_once() -> None:
    launches = schedule(replace(ASKED, tuned=True, peers=("openmpi", "impi", "pickle")), 1)
    expected = {
        (flavour, setting)
        for flavour in ("openmpi", "impi")
        for setting in settings(flavour, tuned=True)
    }
    assert len(expected) > 10
    assert len({launch.name for launch in launches}) == len(launches) == 10 * len(expected)
    for number in range(10):
        block = [launch for launch in launches if launch.block == number]
        assert len(block) == len(expected)
        assert {(launch.flavour, launch.setting) for launch in block} == expected
    orders = {
        tuple((launch.flavour, launch.setting) for launch in launches if launch.block == number)
        for number in range(10)
    }
    assert len(orders) == 10


def test_what_direct_leaves_to_an_mpi_with_one_thread_is_not_measured_there() -> None:
    asked = ask(2, peers="impi,mpich", tuned=True, blocks=1, forms="plain,nonblocking")
    forms = {(each.flavour, each.setting): each.forms for each in schedule(asked, 1)}
    assert forms["impi", "autotuned"] == ("plain",)
    assert forms["impi", "autotuned-threads"] == forms["impi", "default"] == asked.forms
    assert forms["mpich", "one-thread"] == asked.forms
    asked = ask(2, peers="impi", tuned=True, blocks=1, forms="nonblocking")
    assert "autotuned" not in {each.setting for each in schedule(asked, 1)}


def test_those_that_no_setting_changes_take_part_once_beside_each_mpi() -> None:
    for launch in schedule(replace(ASKED, tuned=True), 1):
        assert ("pickle" in launch.peers) == (launch.setting == "default")
        assert "mpi" in launch.peers


def test_an_mpi_that_only_starts_the_ranks_is_not_tuned() -> None:
    asked = replace(ASKED, tuned=True, peers=("pickle",))
    assert {launch.setting for launch in schedule(asked, 1)} == {"default"}


def test_another_build_takes_part_in_every_launch() -> None:
    launches = schedule(replace(ASKED, tuned=True, against="somewhere"), 1)
    assert all("other-build" in launch.peers for launch in launches)
    assert not any("other-build" in launch.peers for launch in schedule(ASKED, 1))


def test_what_is_left_out_covers_one_call_of_one_contender() -> None:
    one = LeftOut("mpi", "plain", "bcast", 1024, "exit code 139")
    every = replace(one, bytes=None)
    assert one.covers("mpi", "plain", "bcast", 1024)
    assert not one.covers("mpi", "plain", "bcast", 2048)
    assert every.covers("mpi", "plain", "bcast", 2048)
    for other in (
        ("pickle", "plain", "bcast"),
        ("mpi", "persistent", "bcast"),
        ("mpi", "plain", "gather"),
    ):
        assert not every.covers(*other, 1024)


def test_a_launch_survives_its_file() -> None:
    asked = replace(ASKED, private=True, tuned=True, forms=FORMS)
    left_out = (LeftOut("mpi", "plain", "bcast", None, "exit code 139"),)
    for launch in schedule(asked, 1)[:3]:
        launch = replace(launch, without=left_out)
        assert Launch.from_dict(json.loads(json.dumps(launch.to_dict()))) == launch
