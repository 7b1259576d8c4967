"""What is left out after which failure, and when an MPI in a setting is given up."""

from dataclasses import replace

import pytest

from experiments.catalogue import spec
from experiments.driver.attempts import FAILURES, PEER_FAILURES, Attempts
from experiments.jobs.failures import LaunchFailed
from experiments.model.contender_names import OURS, changed
from experiments.model.launch import Cell, Launch, LeftOut
from experiments.schedule.blocks import schedule
from tests.benches import ask
from tests.refusals import refusal

ASKED = ask("2,3", peers="openmpi", tuned=True, blocks=2)
LAUNCHES = [launch for block in schedule(ASKED, 1) for launch in block.launches]


def launches(setting: str, ranks: int = 2) -> list[Launch]:
    return [launch for launch in LAUNCHES if (launch.setting, launch.ranks) == (setting, ranks)]


def loss(cell: Cell | None, why: str = "exit code 139") -> LaunchFailed:
    lost = LaunchFailed(f"launch failed: {why}", why)
    lost.cell = cell
    return lost


CELL = Cell("bcast", "mpi", "regular", "local", 1024, form="persistent")


@pytest.mark.parametrize(("setting", "arm"), [("sm", "openmpi-sm"), ("default", "openmpi")])
def test_the_cell_that_failed_is_left_out_here_and_in_later_blocks_alone(
    setting: str, arm: str
) -> None:
    attempts = Attempts()
    first, later = launches(setting)
    text = attempts.failed(first, loss(CELL, "stood still for 60 s"))
    assert text == (
        f"{arm} goes on without mpi's persistent bcast of 1,024 bytes: stood still for 60 s"
    )
    left_out = LeftOut("bcast", "mpi", "persistent", 1024, "stood still for 60 s")
    for launch in (first, later):
        prepared = attempts.prepare(launch)
        assert prepared is not None and prepared.without == (left_out,)
    for launch in (launches("ucx")[0], launches(setting, ranks=3)[0]):
        assert attempts.prepare(launch) == launch


def test_a_call_that_fails_with_two_sizes_is_left_out_with_all() -> None:
    attempts = Attempts()
    launch = launches("sm")[0]
    attempts.failed(launch, loss(CELL))
    text = attempts.failed(launch, loss(replace(CELL, bytes=8)))
    assert "persistent bcast of any size" in text
    prepared = attempts.prepare(launch)
    assert prepared is not None
    assert prepared.without[-1] == LeftOut("bcast", "mpi", "persistent", None, "exit code 139")


def test_what_keeps_failing_is_given_up() -> None:
    attempts = Attempts()
    launch = launches("sm")[0]
    names = ("bcast", "gather", "reduce", "scatter", "alltoall")
    for operation in names[: PEER_FAILURES - 1]:
        attempts.failed(launch, loss(replace(CELL, operation=operation)))
        assert attempts.prepare(launch) is not None
    text = attempts.failed(launch, loss(replace(CELL, operation=names[PEER_FAILURES - 1])))
    assert (
        text == f"openmpi-sm is given up with 2 ranks after {PEER_FAILURES} failures: exit code 139"
    )
    assert all(attempts.prepare(planned) is None for planned in launches("sm"))
    assert attempts.prepare(launches("sm", ranks=3)[0]) is not None


def test_a_setting_that_fails_outside_all_calls_is_given_up_at_once() -> None:
    attempts = Attempts()
    launch = launches("ucx")[0]
    assert "it failed outside all calls" in attempts.failed(launch, loss(None))
    assert attempts.prepare(launch) is None


def test_an_mpi_as_it_comes_that_does_not_start_ends_the_bench() -> None:
    with pytest.raises(LaunchFailed, match="exit code 139"):
        Attempts().refuse(launches("default")[0], loss(None))
    Attempts().refuse(launches("ucx")[0], loss(None))


def test_a_failure_of_ours_ends_the_bench_in_any_setting() -> None:
    for setting in ("default", "sm"):
        launch = launches(setting)[0]
        for contender in (*OURS, changed("HBMCOMM_FAN_IN", 4)):
            lost = loss(replace(CELL, transport=contender))
            assert refusal(LaunchFailed, Attempts().refuse, launch, lost), (setting, contender)
        Attempts().refuse(launch, loss(CELL))


def test_where_environments_are_the_arms_a_container_may_fail_and_the_host_may_not() -> None:
    (block, *_) = schedule(spec.restrict(spec.load("quick"), blocks=1), 1)
    by_arm = {launch.arm: launch for launch in block.launches}
    attempts = Attempts()
    with pytest.raises(LaunchFailed):
        attempts.refuse(by_arm["host"], loss(CELL))
    docker = by_arm["docker-tuned-one"]
    for number in range(FAILURES):
        assert attempts.prepare(docker) == docker, number
        attempts.refuse(docker, loss(CELL))
        assert attempts.failed(docker, loss(CELL)) == ""
    assert attempts.prepare(docker) is None
    assert attempts.failures == ["launch failed: exit code 139"] * FAILURES
    assert attempts.prepare(by_arm["docker-default-one"]) is not None
