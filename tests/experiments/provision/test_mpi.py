import subprocess
import sys
from pathlib import Path

import pytest

from experiments.provision import mpi

PREFIX = Path("/opt/venv")
PROGRAM = ("python", "ranks.py")


def command(
    flavour: str, ranks: int = 2, cores: int = 2, contained: bool = False
) -> tuple[str, dict[str, str]]:
    argv, variables = mpi.mpiexec(flavour, PREFIX, ranks, cores, PROGRAM, contained)
    return " ".join(argv), variables


@pytest.mark.parametrize("flavour", mpi.FLAVOURS)
def test_an_mpi_is_started_from_its_own_environment(flavour: str) -> None:
    line, variables = command(flavour)
    assert line.startswith("/opt/venv/bin/mpiexec -n 2 ")
    assert line.endswith(" python ranks.py")
    assert variables["PATH"].startswith("/opt/venv/bin:")


def test_no_mpi_binds_ranks() -> None:
    assert "--bind-to none" in command("openmpi")[0]
    assert "-bind-to none" in command("mpich")[0]
    assert command("impi")[1]["I_MPI_PIN"] == "0"


def test_more_ranks_than_cores_yield_while_they_wait() -> None:
    crowded = command("openmpi", ranks=4)[0]
    assert "--oversubscribe --mca mpi_yield_when_idle 1" in crowded
    assert "yield" not in command("openmpi", ranks=2)[0]
    assert command("impi", ranks=4)[1]["I_MPI_WAIT_MODE"] == "1"
    assert "I_MPI_WAIT_MODE" not in command("impi", ranks=2)[1]


def test_a_contained_mpich_leaves_the_memory_of_other_processes_alone() -> None:
    assert command("mpich", contained=True)[1]["MPIR_CVAR_CH4_CMA_ENABLE"] == "0"
    assert "MPIR_CVAR_CH4_CMA_ENABLE" not in command("mpich")[1]


def test_the_environment_of_an_mpi_holds_pinned_versions_of_it_and_of_this_project() -> None:
    line = " ".join(mpi.install_command("impi", Path("/p"), Path("/here")))
    assert line.startswith("/p/bin/python -m pip install")
    assert "--constraint /here/constraints.txt --editable /here[impi]" in line


@pytest.mark.parametrize("flavour", mpi.FLAVOURS)
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
    flavour = next(each for each in mpi.FLAVOURS if mpi.prefix(each) != Path(sys.prefix))
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
