import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from experiments.model.environment import MPIS
from experiments.model.errors import Missing
from experiments.processes import scratch
from experiments.provision import mpi_wheels

OTHER = next(mpi for mpi in MPIS if mpi_wheels.prefix(mpi) != Path(sys.prefix))
"""An MPI with another environment than this process."""


def test_into_the_environment_of_an_mpi_go_pinned_versions_only() -> None:
    python, root = Path("/p/bin/python"), Path("/here")
    line = " ".join(mpi_wheels.pip_command(python, root, "install", "--editable", "/here[impi]"))
    assert line == (
        "/p/bin/python -P -m pip install -q --disable-pip-version-check "
        "--constraint /here/constraints.txt --no-build-isolation --editable /here[impi]"
    )


@pytest.mark.rare
def test_what_a_caller_needs_is_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "constraints.txt").write_text("")
    place = mpi_wheels.prefix(OTHER, tmp_path)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    with zipfile.ZipFile(tmp_path / "extra-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr(
            "extra-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: extra\nVersion: 1\n"
        )
        wheel.writestr("extra-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("extra-1.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    lines: list[str] = []
    for _ in range(2):
        mpi_wheels.add(OTHER, "more", ["extra"], lines.append, tmp_path)
    assert lines == [f"more: installing extra for {OTHER}"]
    assert mpi_wheels.distributions(place)["extra"] == "1"


@pytest.mark.parametrize("flavour", MPIS)
def test_an_environment_that_is_up_to_date_is_taken_as_it_is(flavour: str) -> None:
    place = mpi_wheels.ensure(flavour, print)
    assert (place / "bin/mpiexec").is_file()
    again: list[str] = []
    assert mpi_wheels.ensure(flavour, again.append) == place
    assert again == []


@pytest.mark.rare
def test_two_processes_do_not_make_one_environment_at_once_and_a_failure_ends_in_pips_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip reaches no registry."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'unfinished'\n")
    (tmp_path / "constraints.txt").write_text("")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    makes = (
        "from experiments.provision import mpi_wheels\n"
        f"mpi_wheels.ensure({OTHER!r}, print, root=mpi_wheels.Path({str(tmp_path)!r}))\n"
    )
    place = mpi_wheels.prefix(OTHER, tmp_path)
    with scratch.locked(place.parent, f"{OTHER}.lock"):
        other = subprocess.Popen([sys.executable, "-c", makes], stderr=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(3)
        assert not place.exists()
    words = other.communicate(timeout=60)[1]
    assert "Missing: " in words and f"the environment for {OTHER} could not be made" in words


def take_turn(folder: Path) -> None:
    with scratch.locked(folder):
        pass


def test_the_pip_of_a_killed_process_keeps_the_next_one_waiting(tmp_path: Path) -> None:
    gate, places = tmp_path / "gate", tmp_path / "places"
    os.mkfifo(gate)
    makes = (
        "from pathlib import Path\n"
        "from experiments.processes import scratch\n"
        "from experiments.provision import mpi_wheels\n"
        f"with scratch.locked(Path({str(places)!r})) as lock:\n"
        "    print('alone', flush=True)\n"
        f"    mpi_wheels.run(['cat', {str(gate)!r}], 'none', pass_fds=(lock,))\n"
    )
    command = [sys.executable, "-c", makes]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        with gate.open("w"):  # once the command reads from it, which stands for pip
            killed.kill()
            killed.wait()
            next_one = threading.Thread(target=take_turn, args=(places,))
            next_one.start()
            next_one.join(0.3)
            assert next_one.is_alive()
        next_one.join(60)
        assert not next_one.is_alive()


def test_every_distribution_of_an_environment_is_known_with_its_version() -> None:
    versions = mpi_wheels.distributions(Path(sys.prefix))
    assert versions["numpy"] == np.__version__
    assert list(versions) == sorted(versions, key=str.lower)


@pytest.mark.rare
def test_a_torch_that_pip_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (tmp_path / "constraints.txt").write_text("torch==2.13.0+cpu\n")
    subprocess.run([sys.executable, "-m", "venv", mpi_wheels.prefix(OTHER, tmp_path)], check=True)
    lines: list[str] = []
    with pytest.raises(Missing, match="PIP_FIND_LINKS") as caught:
        mpi_wheels.add_torch(OTHER, lines.append, tmp_path)
    assert f"torch cannot be installed for {OTHER}" in str(caught.value)
    assert lines == [f"torch: installing grpcio and ninja and protobuf and torch for {OTHER}"]


def test_a_torch_that_is_there_stays_and_without_a_compiler_a_line_says_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install torch ninja")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    flavour = next(mpi for mpi in MPIS if mpi_wheels.prefix(mpi) == Path(sys.prefix))
    lines: list[str] = []
    mpi_wheels.add_torch(flavour, lines.append)
    assert lines[0].startswith("torch: compiling hbmcomm.torch")
    assert lines[1].startswith(f"torch is left out for {flavour}: hbmcomm.torch: ")
    assert "no-such-compiler" in lines[1] and len(lines) == 2
