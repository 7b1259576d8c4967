"""What ./inv run --list and the page say of an experiment."""

from experiments.catalogue import spec
from experiments.driver import overview
from experiments.driver.forecast import Host
from experiments.schedule.blocks import schedule

HOST = Host(cores=4, copied=5e9, cache=2**25)


def test_an_experiment_is_shown_with_what_its_file_asks_compares_and_needs() -> None:
    """tests/commands/test_commands.py looks for all of them."""
    for name in ("quick", "cluster", "paper"):
        asked = spec.load(name)
        planned = [launch for block in schedule(asked, 1) for launch in block.launches]
        shown = overview.overview(asked, HOST)
        assert shown.question == asked.question
        assert shown.launches == len(planned)
        assert shown.cells == max(len(launch.cells) for launch in planned)
        assert len(shown.row()) == len(overview.HEAD)
    for name, arms, needs in (
        ("quick", "host, userland, docker (default, tuned); 2 ranks", "Docker"),
        ("memory", "host; 2, 4, 8, 16 ranks", "HBM, or --emulate-hbw"),
        ("trees", "hosts:8x100mbit; 8 ranks", "root"),
        ("pointer_lookup", "host; 2 ranks", "–"),
        ("horovod", "host; 2 ranks", "torch, Horovod"),
    ):
        shown = overview.overview(spec.load(name), HOST)
        assert (shown.arms, shown.needs) == (arms, needs), name
