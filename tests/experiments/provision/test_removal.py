"""What carries a campaign's label goes from the engine, whatever comes late; all else stays."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import docker
import pytest

from experiments.environments.docker import LABEL
from experiments.provision import removal
from experiments.provision.engine import EngineMissing

NOWHERE = "unix:///nowhere/docker.sock"


def started(engine: docker.DockerClient, image: str, campaign: str, **options: Any) -> Any:
    options = {"network_mode": "none"} | options
    labels = {LABEL: campaign}
    return engine.containers.run(image, ["sleep", "60"], detach=True, labels=labels, **options)


@contextlib.contextmanager
def network(engine: docker.DockerClient, campaign: str) -> Iterator[Any]:
    name = f"hbmcomm-{campaign}"
    made = engine.networks.create(name, driver="bridge", labels={LABEL: campaign})
    try:
        yield made
    finally:
        with contextlib.suppress(docker.errors.NotFound):
            made.remove()


def test_containers_that_cannot_be_removed_are_left_with_the_command_that_does_it() -> None:
    gone = docker.DockerClient(base_url=NOWHERE, version="1.41")
    with pytest.raises(EngineMissing) as failure:
        removal.remove(gone, "c1")
    assert failure.value.remedy == (
        "docker rm -f $(docker ps -aq --filter label=hbmcomm.campaign=c1)"
    )


class Clock:
    """Time for removal.py, which passes while it sleeps."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_an_engine_that_stays_silent_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(removal, "time", clock)
    with pytest.raises(EngineMissing, match="no container engine answers; docker rm -f"):
        removal.remove_late(lambda: None, "c1", patience=0.5, settle=0.1)
    assert clock.seconds == pytest.approx(0.5, abs=removal.POLL)


@pytest.mark.container
def test_only_containers_and_network_of_the_campaign_go(engine: Any, image: Any) -> None:
    others = started(engine, image.tag, "test-b")
    try:
        with network(engine, "test-a") as ours, network(engine, "test-c") as network_of_others:
            container = started(engine, image.tag, "test-a", network_mode=None, network=ours.name)
            assert removal.remove(engine, "test-a") == [container.name, ours.name]
            assert removal.remove(engine, "test-a") == []
            network_of_others.reload()
            others.reload()
        assert others.status == "running"
    finally:
        assert removal.remove(engine, "test-b") == [others.name]


@pytest.mark.container
def test_a_container_that_is_made_late_goes_too(engine: Any, image: Any) -> None:
    late = threading.Timer(0.7, started, (engine, image.tag, "test-e"))
    late.start()
    removed = removal.remove_late(docker.from_env, "test-e", patience=30, settle=3)
    late.join()
    assert len(removed) == 1
    assert removal.remove(engine, "test-e") == []


@pytest.mark.container
def test_an_engine_that_answers_late_is_waited_for(engine: Any, image: Any) -> None:
    container = started(engine, image.tag, "test-f")
    answers = iter([None, docker.DockerClient(base_url=NOWHERE, version="1.41")])
    removed = removal.remove_late(
        lambda: next(answers, None) or docker.from_env(), "test-f", patience=30, settle=0.1
    )
    assert removed == [container.name]


@pytest.mark.container
def test_what_a_killed_process_made_goes_and_a_living_ones_stays(engine: Any, image: Any) -> None:
    gone = removal.own()[removal.MAKER].replace(".", ".9", 1)  # another process's number
    made = [
        engine.containers.create(image.tag, labels=labels)
        for labels in (removal.own(), {removal.MAKER: gone})
    ]
    try:
        assert removal.remove_abandoned(engine) == [made[1].name]
        made[0].reload()
    finally:
        made[0].remove()
