import subprocess
import sys
from pathlib import Path

import pytest

from experiments.environments.mpiexec import FLAVOURS
from experiments.provision import mpi


def test_the_environment_of_an_mpi_holds_pinned_versions_of_it_and_of_this_project() -> None:
    line = " ".join(mpi.install_command("impi", Path("/p"), Path("/here")))
    assert line.startswith("/p/bin/python -m pip install")
    assert "--constraint /here/constraints.txt --editable /here[impi]" in line


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_an_environment_that_is_up_to_date_is_taken_as_it_is(flavour: str) -> None:
    said: list[str] = []
    place = mpi.ensure(flavour, said.append)
    assert (place / "bin/mpiexec").is_file()
    again: list[str] = []
    assert mpi.ensure(flavour, again.append) == place
    assert again == []


def test_an_environment_that_pip_cannot_make_ends_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'unfinished'\n")
    (tmp_path / "constraints.txt").write_text("")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    flavour = next(each for each in FLAVOURS if mpi.prefix(each) != Path(sys.prefix))
    with pytest.raises(mpi.MpiMissing, match=f"the environment for {flavour} could not be made"):
        mpi.ensure(flavour, lambda line: None, root=tmp_path)


def test_two_processes_do_not_make_one_environment_at_once(tmp_path: Path) -> None:
    place = tmp_path / "mpich"
    waits = (
        f"from experiments.provision import mpi; mpi._alone(mpi.Path({str(place)!r})).__enter__()"
    )
    with mpi._alone(place):
        other = subprocess.Popen([sys.executable, "-c", waits])
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(1.5)
    assert other.wait(30) == 0
