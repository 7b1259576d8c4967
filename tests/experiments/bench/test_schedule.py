"""One seed, one schedule; every block holds each MPI once."""

import json
from dataclasses import replace

from experiments.bench.question import Question, ask
from experiments.bench.schedule import Launch, schedule
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


def test_a_launch_survives_its_file() -> None:
    launch = schedule(replace(ASKED, private=True), 1)[0]
    assert Launch.from_dict(json.loads(json.dumps(launch.to_dict()))) == launch
