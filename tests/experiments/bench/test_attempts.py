"""What is left out after which failure, and when an MPI in a setting is given up."""

import json

import pytest

from experiments.attend import LaunchFailed
from experiments.bench.attempts import MOST, Attempts
from experiments.bench.names import OURS
from experiments.bench.question import ask
from experiments.bench.schedule import Launch, LeftOut, schedule
from experiments.bench.turn import FILE, Turn

LAUNCHES = schedule(ask(4, peers="openmpi", ranks="2,3", tuned=True, blocks=2), 1)


def launches(setting: str, ranks: int = 2) -> list[Launch]:
    return [each for each in LAUNCHES if (each.setting, each.ranks) == (setting, ranks)]


def failure(turn: Turn | None, why: str = "exit code 139") -> LaunchFailed:
    failed = LaunchFailed(f"launch failed: {why}", why)
    failed.left = {FILE: json.dumps(turn) if turn else ""}
    return failed


TURN = Turn("bcast", 1024, "mpi", "persistent")


def test_without_a_failure_a_launch_is_as_it_was() -> None:
    launch = launches("sm")[0]
    assert Attempts().prepare(launch) == launch


def test_the_cell_that_failed_is_left_out_here_and_in_later_blocks_alone() -> None:
    attempts = Attempts()
    first, later = launches("sm")
    said = attempts.failed(first, failure(TURN, "stood still for 60 s"))
    assert said == (
        "openmpi (sm) goes on without mpi's persistent bcast of 1,024 bytes: stood still for 60 s"
    )
    left_out = LeftOut("mpi", "persistent", "bcast", 1024, "stood still for 60 s")
    for launch in (first, later):
        prepared = attempts.prepare(launch)
        assert prepared is not None and prepared.without == (left_out,)
    for launch in (launches("ucx")[0], launches("sm", ranks=3)[0]):
        assert attempts.prepare(launch) == launch


def test_a_call_that_fails_with_two_sizes_is_left_out_with_all() -> None:
    attempts = Attempts()
    launch = launches("sm")[0]
    attempts.failed(launch, failure(TURN))
    said = attempts.failed(launch, failure(TURN._replace(bytes=8)))
    assert "persistent bcast of any size" in said
    prepared = attempts.prepare(launch)
    assert prepared is not None
    assert prepared.without[-1] == LeftOut("mpi", "persistent", "bcast", None, "exit code 139")


def test_what_keeps_failing_is_given_up() -> None:
    attempts = Attempts()
    launch = launches("sm")[0]
    names = ("bcast", "gather", "reduce", "scatter", "alltoall")
    for operation in names[: MOST - 1]:
        attempts.failed(launch, failure(TURN._replace(operation=operation)))
        assert attempts.prepare(launch) is not None
    said = attempts.failed(launch, failure(TURN._replace(operation=names[MOST - 1])))
    assert said == f"openmpi (sm) is given up with 2 ranks after {MOST} failures: exit code 139"
    assert all(attempts.prepare(each) is None for each in launches("sm"))
    assert attempts.prepare(launches("sm", ranks=3)[0]) is not None


def test_a_setting_that_fails_outside_all_calls_is_given_up_at_once() -> None:
    attempts = Attempts()
    launch = launches("ucx")[0]
    assert "it failed outside all calls" in attempts.failed(launch, failure(None))
    assert attempts.prepare(launch) is None


def test_an_mpi_as_it_comes_that_does_not_start_ends_the_bench() -> None:
    failed = failure(None)
    with pytest.raises(LaunchFailed) as caught:
        Attempts().failed(launches("default")[0], failed)
    assert caught.value is failed


@pytest.mark.parametrize("contender", OURS)
@pytest.mark.parametrize("setting", ["default", "sm"])
def test_a_failure_of_ours_ends_the_bench_in_any_setting(contender: str, setting: str) -> None:
    with pytest.raises(LaunchFailed):
        Attempts().failed(launches(setting)[0], failure(TURN._replace(contender=contender)))


def test_a_call_of_an_mpi_as_it_comes_is_left_out_too() -> None:
    attempts = Attempts()
    launch = launches("default")[0]
    attempts.failed(launch, failure(TURN))
    prepared = attempts.prepare(launch)
    assert prepared is not None and prepared.without
