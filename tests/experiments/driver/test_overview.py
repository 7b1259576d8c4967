"""What ./inv run --list and the page say of an experiment."""

import pytest

from experiments.catalogue import spec
from experiments.driver import overview
from experiments.driver.forecast import Host
from experiments.schedule.blocks import schedule

HOST = Host(cores=4, copied=5e9, cache=2**25)


def test_every_experiment_is_there_with_its_question_and_its_launches() -> None:
    found = {each.name: each for each in overview.every(HOST)}
    assert sorted(found) == spec.names()
    for name in ("quick", "cluster", "paper"):
        asked = spec.load(name)
        planned = [launch for block in schedule(asked, 1) for launch in block.launches]
        assert found[name].question == asked.question
        assert found[name].launches == len(planned)
        assert found[name].cells == max(len(launch.cells) for launch in planned)
        assert len(found[name].row()) == len(overview.HEAD)


@pytest.mark.parametrize(
    ("name", "arms", "needs"),
    [
        ("quick", "host, userland, docker (default, tuned); 2 ranks", "Docker"),
        ("memory", "host; 2, 4, 8, 16 ranks", "HBM, or --emulate-hbw"),
        ("trees", "hosts:8x100mbit; 8 ranks", "root"),
        ("pointer_lookup", "host; 2 ranks", "–"),
        ("horovod", "host; 2 ranks", "torch, Horovod"),
    ],
)
def test_arms_and_needs_are_those_of_its_file(name: str, arms: str, needs: str) -> None:
    found = overview.overview(spec.load(name), HOST)
    assert (found.arms, found.needs) == (arms, needs)
