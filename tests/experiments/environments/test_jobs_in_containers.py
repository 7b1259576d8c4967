"""Real jobs of several containers: what they share, what crosses their network, what is left."""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.environments.docker import LABEL, SEVERAL, Docker
from experiments.environments.podman import RUNTIME as PODMAN
from experiments.environments.process import Job
from experiments.jobs.containers import ContainerRefused
from experiments.jobs.execute import execute
from experiments.model.checkout import ROOT
from experiments.model.environment import DOCKER, MPIS, EnvironmentId
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Cell, Measurement
from experiments.processes import tracking
from experiments.provision import image as image_provision
from experiments.provision import mpi_wheels, passthrough, podman, system
from experiments.provision.image import Image
from tests import launched

pytestmark = [pytest.mark.container, pytest.mark.ranks]

CAMPAIGN = f"test-jobs-{os.getpid()}"  # a run that was killed may have left its own
OURS: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={CAMPAIGN}"}
LARGE = 4 * 2**20
REPETITIONS = 20
FLAVOURS = ["openmpi", *(pytest.param(mpi_name, marks=pytest.mark.rare) for mpi_name in MPIS[1:])]
"""MPIs, one image each; an image takes as long to build as all the tests of the first."""
LAUNCH = replace(
    launched.LAUNCH,
    arm="job",
    environment=DOCKER,
    profile="tuned",
    mpi="",
    measurement=Measurement(time_cap=60.0, min_iterations=REPETITIONS, max_iterations=REPETITIONS),
    cells=tuple(
        Cell("allreduce", transport, "regular", "local", size)
        for transport in ("direct", "mpi")
        for size in (1024, LARGE)
    ),
)


@dataclass
class Prepared:
    """A job that can be executed, and what becomes of it."""

    job: Job
    folder: Path
    log: Path
    client: docker.DockerClient
    crossed: int = 0

    def run(self, tick: Callable[[], None] = lambda: None) -> int:
        """Execute it; counts the bytes that its containers sent on their network."""

        def look() -> None:
            self.crossed = max(self.crossed, sent(self.client, self.job.network))
            tick()

        return execute(self.job, self.log, self.client, look)


Prepare = Callable[..., Prepared]


def sent(client: docker.DockerClient, network: str) -> int:
    """Bytes that came out of containers, as the bridge's side of their veth pairs counts them."""
    bridge = f"br-{str(client.networks.get(network).id)[:12]}"
    ports = Path(f"/sys/class/net/{bridge}/brif").glob("*")
    return sum(int(Path(f"/sys/class/net/{p.name}/statistics/rx_bytes").read_text()) for p in ports)


@pytest.fixture
def prepared(
    engine: docker.DockerClient, images: Callable[[str], Future[Image]], tmp_path: Path
) -> Prepare:
    """prepared(layout, flavour, **changes of the launch)"""

    def prepare(layout: str, flavour: str, **changes: Any) -> Prepared:
        job = made(images(flavour).result().id, layout, flavour, tmp_path / "launch", **changes)
        return Prepared(job, tmp_path / "launch", tmp_path / "log", engine)

    return prepare


def made(
    image: str, layout: str, flavour: str, folder: Path, engine: str = "docker", **changes: Any
) -> Job:
    """A job over a folder that is made for it."""
    folder.mkdir()
    launch = replace(
        LAUNCH, environment=EnvironmentId(engine), layout=layout, mpi=flavour, **changes
    )
    (folder / "launch.json").write_text(json.dumps(launch.to_dict()))
    if os.getuid() == 0:
        os.chown(folder, *passthrough.owner())
    environment = Docker(
        *(image, image_provision.PREFIX, passthrough.cores()),
        *(passthrough.machine(), CAMPAIGN),
        engine=engine,
        host_prefix=mpi_wheels.ensure(flavour, print),
    )
    job = environment.command(launch, folder)
    assert isinstance(job, Job)
    return job


@pytest.fixture(autouse=True)
def nothing_is_left(engine: docker.DockerClient) -> Any:
    """Around every test: no container, network, process or shared-memory file of a job remains."""
    before = shared_files()
    yield
    assert not engine.containers.list(all=True, filters=OURS)
    assert not engine.networks.list(filters=OURS)
    assert not [path for path in Path("/proc").glob("[0-9]*") if entering(path)]
    assert shared_files() <= before


def shared_files() -> set[Path]:
    """Processes of the user that containers run as, beside other users' jobs."""
    segments = set()
    for path in tracking.segments():
        with contextlib.suppress(FileNotFoundError):  # another's, and gone since
            if path.stat().st_uid == passthrough.owner()[0]:
                segments.add(path)
    return segments


def entering(process: Path) -> bool:
    """Whether a process was started for a job of this campaign."""
    try:
        return f"=hbmcomm-{CAMPAIGN}-".encode() in (process / "environ").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_isolated_ranks_have_mpi_over_the_network_and_no_direct(
    prepared: Prepare, flavour: str
) -> None:
    job = prepared("isolated", flavour)
    assert job.run() == 0, job.log.read_text()
    result = json.loads((job.folder / "result.json").read_text())
    for cell in result["cells"]:
        if cell["operation"] == "allreduce" and cell["transport"] == "direct":
            assert re.match(
                "the ranks cannot share memory: memfd: rank .: cannot map", cell["skipped"]
            )
        else:
            assert "skipped" not in cell
    assert job.crossed > REPETITIONS * LARGE
    assert [rank["cpu"] for rank in result["ranks"]] == [0, 1]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_ranks_that_share_memory_use_it_for_direct_whatever_their_mpi_does(
    prepared: Prepare, flavour: str
) -> None:
    cells = tuple(cell for cell in LAUNCH.cells if cell.transport == "direct")
    job = prepared("per-rank", flavour, cells=cells)
    assert job.run() == 0, job.log.read_text()
    result = json.loads((job.folder / "result.json").read_text())
    assert not [cell for cell in result["cells"] if "skipped" in cell]
    assert {pool["source"] for rank in result["ranks"] for pool in rank["pools"]} == {"arena"}
    assert job.crossed < REPETITIONS * LARGE / 2
    assert [rank["cpu"] for rank in result["ranks"]] == [0, 1]


@pytest.mark.parametrize(
    ("profile", "layout"),
    [
        pytest.param("tuned", SEVERAL[0], marks=pytest.mark.rare),
        ("default", SEVERAL[1]),
        pytest.param("default", SEVERAL[0], marks=pytest.mark.rare),
        pytest.param("tuned", SEVERAL[1], marks=pytest.mark.rare),
    ],
)
def test_more_ranks_than_cores_in_every_profile(
    prepared: Prepare, layout: str, profile: str
) -> None:
    flavour = MPIS[(SEVERAL.index(layout) + len(profile)) % 2]
    job = prepared(layout, flavour, profile=profile, ranks=4)
    assert job.run() == 0, job.log.read_text()
    result = json.loads((job.folder / "result.json").read_text())
    assert [rank["rank"] for rank in result["ranks"]] == [0, 1, 2, 3]


@pytest.mark.parametrize("layout", SEVERAL)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_job_that_is_ended_in_the_middle_leaves_nothing(
    prepared: Prepare, layout: str, flavour: str
) -> None:
    endless = Measurement(time_cap=600.0, min_iterations=10**6, max_iterations=10**7)
    job = prepared(layout, flavour, measurement=endless)

    def interrupt() -> None:
        if (job.folder / "progress").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job.run(interrupt)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_rank_that_fails_ends_the_job(prepared: Prepare, flavour: str) -> None:
    job = prepared("isolated", flavour)
    launch = json.loads((job.folder / "launch.json").read_text())
    (job.folder / "launch.json").write_text(json.dumps(launch | {"ranks": 3}))
    assert job.run() != 0
    assert "asks for 3 ranks; found 2" in job.log.read_text()


def test_a_container_that_is_refused_takes_the_others_with_it(prepared: Prepare) -> None:
    job = prepared("per-rank", "openmpi")
    first, second = job.job.containers
    job.job = replace(job.job, containers=(first, replace(second, image="hbmcomm:nowhere")))
    with pytest.raises(ExperimentsError, match="No such image"):
        job.run()


def test_a_network_that_a_killed_job_left_is_refused_once_and_gone(prepared: Prepare) -> None:
    job = prepared("isolated", "openmpi")
    left = job.client.networks.create(job.job.network)
    with pytest.raises(ContainerRefused, match="already exists"):
        job.run()
    assert not job.client.networks.list(ids=[str(left.id)])


def test_a_container_that_does_not_wait_is_named_with_its_last_words(prepared: Prepare) -> None:
    job = prepared("isolated", "openmpi")
    words = ("sh", "-c", "echo cannot wait; exit 1")
    short = tuple(replace(container, argv=words) for container in job.job.containers)
    job.job = replace(job.job, containers=short)
    with pytest.raises(ContainerRefused, match=r"exited.*cannot wait"):
        job.run()


def test_the_shell_lines_do_the_same(prepared: Prepare) -> None:
    job = prepared("per-rank", "openmpi")
    done = subprocess.run(
        ["sh", "-c", job.job.shell()], cwd=ROOT, capture_output=True, timeout=120, check=False
    )
    assert (job.folder / "result.json").exists(), done.stderr.decode()


@pytest.mark.parametrize(
    "layout",
    [pytest.param(name, marks=[pytest.mark.rare] * (name == "per-rank")) for name in SEVERAL],
)
def test_podman_forms_a_job_too(layout: str, image: Image, tmp_path: Path) -> None:
    if refusal := system.hindrance(PODMAN):
        pytest.skip(str(refusal))
    folder, log = tmp_path / "launch", tmp_path / "log"
    with podman.running() as client:
        copy = podman.ensure_image(client)
        job = made(copy.id, layout, "openmpi", folder, engine="podman")
        assert execute(job, log, client, lambda: None) == 0, log.read_text()
        assert not client.containers.list(all=True, filters=OURS)
        assert not client.networks.list(filters=OURS)
    cells = json.loads((folder / "result.json").read_text())["cells"]
    skipped = {cell["transport"] for cell in cells if "skipped" in cell}
    assert skipped == ({"direct"} if layout == "isolated" else set())
