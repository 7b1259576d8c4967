"""Each setting names what its MPI knows, and changes what it does."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from experiments.model.mpi_settings import DEFAULT, WARMUP, settings, variables, warmup
from experiments.provision import mpi_wheels as provision
from tests.starting import Start

TUNED = [(flavour, name) for flavour in MPIS for name in settings(flavour, tuned=True)[1:]]
MPI4PY = "MPI4PY_RC_THREAD_LEVEL"

pytestmark = pytest.mark.ranks


def test_untuned_an_mpi_is_as_it_comes() -> None:
    for flavour in MPIS:
        assert settings(flavour, tuned=False) == (DEFAULT,)
        assert settings(flavour, tuned=True)[0] == DEFAULT
        assert variables(flavour, DEFAULT) == {}


def test_names_are_fit_for_files_no_two_settings_are_one_and_none_has_a_folder() -> None:
    for flavour in MPIS:
        every = settings(flavour, tuned=True)
        assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in every)
        envs = [variables(flavour, name) for name in every]
        assert len({tuple(sorted(env.items())) for env in envs}) == len(every)
        assert not any(Path(value).is_absolute() for env in envs for value in env.values())


def test_an_mpi_that_tunes_itself_warms_up_until_it_is_tuned() -> None:
    longer = {setting for setting in TUNED if warmup(*setting) != WARMUP}
    assert longer == {setting for setting in TUNED if setting[1].startswith("autotuned")}
    assert {warmup(*setting) for setting in longer} == {64}
    names = ("", DEFAULT, "of a program that asks for its own")
    assert all(warmup(flavour, name) == WARMUP for flavour in MPIS for name in names)


@pytest.fixture(scope="module")
def words() -> Callable[[str], str]:
    """The names that an MPI's library knows, as text."""

    def ask(flavour: str) -> str:
        prefix = provision.ensure(flavour, print)
        if flavour != "openmpi":
            (library,) = {path.resolve() for path in prefix.glob("lib/libmpi.so.12")}
            return library.read_bytes().decode("ascii", errors="replace")
        return subprocess.run(
            [prefix / "bin/ompi_info", "--all", "--parsable"],
            env=os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    return ask


@pytest.mark.parametrize(
    "flavour",
    [*MPIS[:2], pytest.param(MPIS[2], marks=pytest.mark.rare)],  # it takes half a minute
)
def test_every_variable_and_every_choice_is_one_that_the_mpi_knows(
    flavour: str, words: Callable[[str], str]
) -> None:
    known = words(flavour)
    for name in settings(flavour, tuned=True):
        for variable, value in variables(flavour, name).items():
            if variable == MPI4PY:
                continue
            parameter = variable.removeprefix("OMPI_MCA_")
            assert re.search(rf"\b{parameter}\b", known), f"{flavour} knows no {variable}"
            if not value.isdigit() and value not in ("any", "auto"):
                assert value in known, f"{flavour} knows no {value} for {variable}"


PROGRAM = """
from mpi4py import MPI
import numpy as np
comm = MPI.COMM_WORLD
x, y = np.ones(4), np.empty(4)
for _ in range(20):
    comm.Bcast(x); comm.Allreduce(x, y); comm.Reduce(x, y if comm.rank == 0 else None)
    comm.Barrier()
assert (y == comm.size).all() or comm.rank
print(f"threads {MPI.Query_thread() == MPI.THREAD_SINGLE}", flush=True)
"""

LOUD = {
    "openmpi": {"OMPI_MCA_coll_base_verbose": "10", "OMPI_MCA_pml_base_verbose": "10"},
    "mpich": {"MPIR_CVAR_COLLECTIVE_FALLBACK": "print"},
    "impi": {"I_MPI_DEBUG": "10"},
}
SIGNS = {
    "OMPI_MCA_coll_sm_priority": r"selecting +sm, priority +50, Enabled",
    "OMPI_MCA_coll_adapt_priority": r"selecting +adapt, priority +100, Enabled",
    "OMPI_MCA_pml": r"select: component ucx selected",
    "I_MPI_SHM": r"I_MPI_SHM=bdw_avx2",
    "I_MPI_TUNING_MODE": r"I_MPI_TUNING_MODE=auto",
}
"""What an MPI says where a variable has its effect, and does not say where it is not set."""


@pytest.fixture(scope="module")
def say(mpirun_in: Start, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """What two ranks of an MPI in a setting say, when asked to say what they choose."""
    folder = tmp_path_factory.mktemp("said")
    program = folder / "program.py"
    program.write_text(PROGRAM)

    outputs: dict[str, str] = {}  # a setting starts once

    def run(flavour: str, environment: dict[str, str]) -> str:
        key = json.dumps([flavour, environment])
        if key not in outputs:
            loud = LOUD[flavour] | environment
            outputs[key] = mpirun_in(folder, program, 2, mpi=flavour, env=loud).output
        return outputs[key]

    return run


@pytest.mark.parametrize(("flavour", "name"), TUNED)
def test_a_setting_starts_and_does_what_it_says(
    flavour: str, name: str, say: Callable[..., str]
) -> None:
    wanted = variables(flavour, name)
    printed = say(flavour, wanted)
    assert ("threads True" in printed) == (MPI4PY in wanted)
    for variable, sign in SIGNS.items():
        assert bool(re.search(sign, printed)) == (variable in wanted), f"{variable}: {printed}"


def test_mpich_takes_release_gather_with_one_thread_alone(say: Callable[..., str]) -> None:
    forced = variables("mpich", "release-gather")
    refused = "release_gather cannot be applied"
    assert refused not in say("mpich", forced)
    del forced[MPI4PY]
    assert refused in say("mpich", forced)


def test_coll_han_steps_back_on_one_node_whatever_its_priority(say: Callable[..., str]) -> None:
    """Why it is no setting."""
    printed = say("openmpi", {"OMPI_MCA_coll_han_priority": "100"})
    assert "comm has only local processes; disqualifying myself" in printed
    assert not re.search(r"selecting +han, priority +100, Enabled", printed)
