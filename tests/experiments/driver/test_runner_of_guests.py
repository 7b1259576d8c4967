"""The runner distinguishes a guest that ended from a launch that failed in it."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from experiments.driver import launching, runner
from experiments.environments.process import Process
from experiments.jobs.execute import MachineGone
from experiments.jobs.failures import LaunchFailed
from experiments.model.environment import BARE_HOST, DOCKER, EnvironmentId
from experiments.model.launch import Block, Launch
from experiments.results import store
from tests.experiments.driver.instant import Commands, Instant, Stuck, alike, each, run

BARE_METAL, DOCKER_THERE = EnvironmentId("vm", "knl"), EnvironmentId("vm-docker", "knl")


def there(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks in an emulated machine: on its bare metal and in Docker there."""
    names = {BARE_HOST: BARE_METAL, DOCKER: DOCKER_THERE}

    def moved(launch: Launch) -> Launch:
        environment = names[launch.environment]
        return replace(launch, environment=environment, arm=f"vm-{launch.arm}")

    return tuple(
        replace(block, launches=tuple(moved(launch) for launch in block.launches))
        for block in blocks
    )


def test_what_fails_in_docker_in_a_guest_is_a_finding_and_on_its_bare_metal_ends_the_campaign(
    folder: Path, blocks: tuple[Block, ...]
) -> None:
    def failing(where: EnvironmentId) -> Commands:
        return each(lambda launch: Instant(code=3 if launch.environment == where else 0))

    shown = run(folder, there(blocks), failing(DOCKER_THERE))
    assert len(shown) == len(store.failed(folder)) == 2
    shutil.rmtree(folder)
    store.create(folder, {"name": "quick"})
    with pytest.raises(LaunchFailed, match="failed with exit code 3"):
        run(folder, there(blocks), failing(BARE_METAL))


def test_a_guest_that_dies_ends_the_campaign_whatever_ran_in_it(
    folder: Path, blocks: tuple[Block, ...]
) -> None:
    ended: list[str] = []

    @dataclass(frozen=True)
    class Crashing(Instant):
        def command(self, launch: Launch, folder: Path) -> Process:
            ended.append("Kernel panic - not syncing")
            return super().command(launch, folder)

    def environment(launch: Launch) -> Instant:
        return Crashing(code=1) if launch.environment == DOCKER_THERE else Instant()

    gone = {DOCKER_THERE: lambda idle: "".join(ended)}
    with pytest.raises(
        MachineGone, match=r"gone: Kernel panic.*\nFinished launches are kept: --resume"
    ) as caught:
        run(folder, there(blocks), each(environment), gone)
    assert "Kernel panic" in str(caught.value)
    assert store.failed(folder) == {}


def test_a_guest_that_is_gone_is_not_waited_for(folder: Path, blocks: tuple[Block, ...]) -> None:
    gone = dict.fromkeys((BARE_METAL, DOCKER_THERE), lambda idle: "QEMU ended with code -9")
    with pytest.raises(MachineGone, match="QEMU ended with code -9"):
        run(folder, there(blocks), alike(Stuck()), gone)


def test_a_launch_that_fails_in_a_guest_that_lives_is_reported_as_such(
    folder: Path, blocks: tuple[Block, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "GONE_PATIENCE", 0.2)
    gone = {BARE_METAL: lambda idle: ""}
    with pytest.raises(LaunchFailed, match="failed with exit code 3"):
        run(folder, there(blocks), alike(Instant(code=3)), gone)


def test_a_guest_is_given_longer_before_a_launch_is_taken_to_hang(
    folder: Path, blocks: tuple[Block, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Instant):
        def command(self, launch: Launch, folder: Path) -> Process:
            return Process(
                ("/bin/sh", "-c", 'sleep 1; "$@"', "sh", *super().command(launch, folder).argv)
            )

    monkeypatch.setattr(launching, "STALLED", 0.3)
    run(folder, there(blocks)[:1], alike(Slow()))
    assert len(store.finished(folder)) == 3
