"""The runner starts launches in order, keeps what finished, and refuses what cannot be compared."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.catalogue import spec
from experiments.driver import attempts, launching, memory_fit, together
from experiments.driver.launching import LaunchContext, run_alone
from experiments.environments.process import Process
from experiments.jobs.failures import LaunchFailed
from experiments.model.arms import ALONE
from experiments.model.environment import BARE_HOST, DOCKER
from experiments.model.launch import Block, Launch
from experiments.results import store
from experiments.results.store import ResultsError
from experiments.schedule import footprint
from experiments.schedule.blocks import schedule
from tests.experiments.driver.instant import (
    ME,
    Instant,
    Stuck,
    alike,
    apart,
    each,
    host_and_docker,
    run,
)
from tests.launched import LAUNCH
from tests.second_user import SecondUser


def test_the_launches_of_a_block_are_shown_with_their_binding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = spec.restrict(spec.load("placement"), ranks="2", sizes="1KiB", blocks=1)
    one = schedule(asked, 1)
    run(folder, one, alike(Instant()))
    for block, line in zip(one, capsys.readouterr().err.splitlines(), strict=True):
        assert f"] block {block.number} in turns ({block.launches[0].binding}): " in line


def written(folder: Path) -> dict[Path, int]:
    """When each file of a launch was written; an inode's number may be that of a removed file."""
    return {path: path.stat().st_mtime_ns for path in (folder / "launches").iterdir()}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of two blocks that was run once."""
    folder = tmp_path_factory.mktemp("measured") / "campaign"
    store.create(folder, {"name": "quick"})
    run(folder, host_and_docker(blocks=2), alike(Instant()))
    return folder


@pytest.fixture
def finished(measured: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(measured, tmp_path / "finished"))


def test_every_launch_is_run_once_and_taken_in_with_its_command(
    measured: Path, blocks: tuple[Block, ...]
) -> None:
    names = {launch.name for block in blocks for launch in block.launches}
    assert store.finished(measured) == names
    assert not (measured / "incoming").exists()
    for name in names:
        assert sys.executable in store.read_result(measured, name).command


def test_finished_launches_are_not_run_again(finished: Path, blocks: tuple[Block, ...]) -> None:
    for launch in blocks[1].launches:
        for path in (finished / "launches").glob(f"{launch.name}.*"):
            path.unlink()
    kept = written(finished)
    run(finished, blocks, alike(Instant()))
    assert kept and kept.items() <= written(finished).items()
    assert len(store.finished(finished)) == 6


@pytest.mark.parametrize(("held", "alive"), [(0, 1), (4, 2)])
def test_arms_whose_buffers_do_not_fit_together_take_turns_in_pairs_where_two_of_them_do(
    folder: Path, blocks: tuple[Block, ...], monkeypatch: pytest.MonkeyPatch, held: int, alive: int
) -> None:
    one = max(footprint.own_bytes(blocks[0].launches[0], rank, 0) for rank in (0, 1))
    room_for = (held + 0.5) * one / footprint.MEMORY_SHARE  # of 3 arms with 2 ranks
    monkeypatch.setattr(memory_fit.facts, "available_memory", lambda: room_for)
    monkeypatch.setattr(memory_fit, "PROCESS", 0)
    run(folder, blocks[:1], alike(Instant()))
    asked = {launch.name for launch in blocks[0].launches}
    assert store.finished(folder) >= asked
    read = [store.read_result(folder, name) for name in store.finished(folder)]
    assert {len(result.company or ["itself"]) for result in read} == {alive}
    assert len(read) == (4 if alive == 2 else 3)
    kept = written(folder)
    run(folder, blocks[:1], alike(Instant()))
    assert written(folder) == kept


def test_an_arm_that_lacks_in_a_block_of_pairs_takes_turns_with_the_reference_again(
    finished: Path, blocks: tuple[Block, ...]
) -> None:
    docker = next(launch for launch in blocks[0].launches if launch.environment == DOCKER)
    (finished / "launches" / f"{docker.name}.json").unlink()
    others = sorted(launch.name for launch in blocks[0].launches if launch != docker)
    for name in others:  # as where it failed and these went on
        kept = finished / "launches" / f"{name}.json"
        store.write_json(kept, store.read_json(kept) | {"company": others})
    run(finished, blocks[:1], alike(Instant()))
    company = sorted([docker.name, f"0000-host-beside-{docker.arm}"])
    assert store.read_result(finished, docker.name).company == tuple(company)


def test_a_block_that_was_taken_in_by_half_is_measured_again_as_a_whole(
    finished: Path, blocks: tuple[Block, ...]
) -> None:
    first, second = ({launch.name for launch in block.launches} for block in blocks)
    kept = written(finished)
    (finished / "launches" / f"{min(first)}.json").unlink()  # its JSON is taken in last
    run(finished, blocks, alike(Instant()))
    stays = {path.stem for path, time in written(finished).items() if time == kept.get(path)}
    assert stays == second
    assert store.read_result(finished, min(first)).company == tuple(sorted(first))


def test_a_failed_launch_is_reported_with_its_last_lines_and_those_before_it_stay(
    folder: Path, blocks: tuple[Block, ...]
) -> None:
    def failing(launch: Launch) -> Instant:
        return Instant(code=3 if launch.environment == BARE_HOST and launch.block else 0)

    with pytest.raises(LaunchFailed) as caught:
        run(folder, blocks, each(failing))
    assert "failed with exit code 3" in str(caught.value)
    assert "said by the launch" in str(caught.value)
    assert "--resume" in str(caught.value)
    assert store.finished(folder) == {launch.name for launch in blocks[0].launches}
    assert not (folder / "incoming").exists()


def test_a_container_that_fails_is_kept_as_a_finding_and_the_campaign_goes_on(
    folder: Path, blocks: tuple[Block, ...]
) -> None:
    shown = run(folder, blocks, apart(docker=Instant(code=3)))
    broken = store.failed(folder)
    assert len(shown) == len(broken) == 2
    for name, why in broken.items():
        assert f"launch {name} failed with exit code 3" in why.reason
        assert why.arm == "docker-tuned-one"
    assert {launch.arm for block in blocks for launch in block.launches} == {
        name.partition("-")[2] for name in store.finished(folder) | set(broken)
    }
    assert run(folder, blocks, alike(Instant())) == []
    assert store.failed(folder) == {}
    again = {f"{number:04d}-host-beside-docker-tuned-one" for number in (0, 1)}
    asked = {launch.name for block in blocks for launch in block.launches}
    assert store.finished(folder) == asked | again


def test_an_arm_that_keeps_failing_is_not_tried_in_every_block(folder: Path) -> None:
    blocks = host_and_docker(blocks=4)
    shown = run(folder, blocks, apart(docker=Instant(code=3)))
    assert len(shown) == attempts.FAILURES < 4
    assert len(store.finished(folder)) == 8


def test_a_launch_with_another_mpi_is_refused_before_it_is_taken_in(
    folder: Path, blocks: tuple[Block, ...]
) -> None:
    environments = apart(docker=Instant(mpi="4.1"))
    with pytest.raises(ResultsError, match=r"versions\.mpi: .* against .*another --out"):
        run(folder, blocks, environments)
    arms = {name.partition("-")[2] for name in store.finished(folder)}
    assert not ({"host", "docker-tuned-one"} <= arms)


def test_a_launch_that_stands_still_is_ended(
    folder: Path, blocks: tuple[Block, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "STALLED", 0.5)
    monkeypatch.setattr(together, "START_PATIENCE", 0.5)
    with pytest.raises(LaunchFailed, match="did not start within 0 s"):
        run(folder, blocks, alike(Stuck()))
    host = next(launch for launch in blocks[0].launches if launch.arm == "host")
    alone = replace(blocks[0], launches=(host,))
    with pytest.raises(LaunchFailed, match="stood still for 0 s"):
        run(folder, [alone], alike(Stuck()))
    assert store.finished(folder) == set()


def copy_block(folder: Path, number: int) -> None:
    """A block with the measurements of the second one."""
    for path in (folder / "launches").glob("0001-*"):
        copy = path.with_name(path.name.replace("0001-", f"{number:04d}-"))
        shutil.copy(path, copy)
        if copy.suffix == ".json":
            values = store.read_json(copy)
            values["launch"]["block"] = number
            company = [name.replace("0001-", f"{number:04d}-") for name in values["company"]]
            store.write_json(copy, values | {"company": company})


def test_the_reference_arm_runs_alone_once_in_a_campaign_of_enough_blocks(finished: Path) -> None:
    every = host_and_docker(blocks=6)
    for number in range(2, 6):
        copy_block(finished, number)
    for path in (finished / "launches").glob("0000-*"):
        path.unlink()
    run(finished, every, alike(Instant()))
    planned = {launch.name for block in every for launch in block.launches}
    assert store.finished(finished) - planned == {"0000-host-alone"}
    extra = store.read_result(finished, "0000-host-alone")
    assert (extra.company, extra.launch.arm) == ((), ALONE)
    (finished / "launches" / "0003-host.json").unlink()
    run(finished, every, alike(Instant()))
    assert store.finished(finished) == planned | {"0000-host-alone"}


@pytest.mark.parametrize(
    ("program", "why"),
    [("sys.exit(7)", "exit code 7"), ("time.sleep(600)", "stood still for 1 s")],
    ids=["ends", "hangs"],
)
def test_a_failure_says_in_a_few_words_why(
    folder: Path, program: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "STALLED", 1.0)
    command = Process((sys.executable, "-c", f"import sys, time; {program}"))
    context = LaunchContext(folder, lambda launch, place: command, ME)
    with pytest.raises(LaunchFailed, match="--resume goes on") as caught:
        run_alone(context, LAUNCH, lambda share: None)
    assert caught.value.why == why
    assert not (folder / "incoming").exists()


STRANGE = """
import os, sys, time
os.chdir(sys.argv[1])
for words in ("1 x 0", "a 3 4", "1 0 5", "9 2 1", "1 " + "9" * 5000, ""):
    with open("progress", "w") as file:
        file.write(words)
    time.sleep(0.3)
os.unlink("progress")
os.mkfifo("progress")
time.sleep(0.3)
sys.exit(7)
"""


def test_strange_words_of_progress_end_no_campaign(folder: Path) -> None:
    shares: list[float] = []

    def command(launch: Launch, place: Path) -> Process:
        return Process((sys.executable, "-c", STRANGE, str(place)))

    context = LaunchContext(folder, command, ME)
    with pytest.raises(LaunchFailed) as caught:
        run_alone(context, LAUNCH, shares.append)
    assert caught.value.why == "exit code 7"
    assert set(shares) <= {0.0, 1.0}


def test_a_link_in_a_launchs_folder_gives_no_file_of_root_away(
    folder: Path, second_user: SecondUser
) -> None:
    owner = (second_user.uid, second_user.gid)
    context = LaunchContext(folder, lambda launch, place: Process(("true",)), owner)
    precious = folder / "precious"
    precious.touch()
    with store.incoming(folder, "0000-docker") as place:
        assert place.stat().st_mode & 0o777 == 0o700
        (place / "link").symlink_to(precious)
        context.prepare(replace(LAUNCH, environment=DOCKER), place)
        owners = {path.name: path.lstat().st_uid for path in (place, *place.iterdir())}
    assert owners == dict.fromkeys(("0000-docker", "launch.json", "link"), second_user.uid)
    assert precious.stat().st_uid == 0
