"""What ./inv run --list and the page say of an experiment."""

from experiments.catalogue import spec
from experiments.driver import overview
from experiments.driver.forecast import Host
from experiments.schedule.blocks import schedule

HOST = Host(cores=4, copied=5e9, cache=2**25)


def test_every_experiment_is_there_with_what_its_file_asks_compares_and_needs() -> None:
    overviews = {experiment.name: experiment for experiment in overview.every(HOST)}
    assert sorted(overviews) == spec.names()
    for name in ("quick", "cluster", "paper"):
        asked = spec.load(name)
        planned = [launch for block in schedule(asked, 1) for launch in block.launches]
        assert overviews[name].question == asked.question
        assert overviews[name].launches == len(planned)
        assert overviews[name].cells == max(len(launch.cells) for launch in planned)
        assert len(overviews[name].row()) == len(overview.HEAD)
    for name, arms, needs in (
        ("quick", "host, userland, docker (default, tuned); 2 ranks", "Docker"),
        ("memory", "host; 2, 4, 8, 16 ranks", "HBM, or --emulate-hbw"),
        ("trees", "hosts:8x100mbit; 8 ranks", "root"),
        ("pointer_lookup", "host; 2 ranks", "–"),
        ("horovod", "host; 2 ranks", "torch, Horovod"),
    ):
        assert (overviews[name].arms, overviews[name].needs) == (arms, needs), name
