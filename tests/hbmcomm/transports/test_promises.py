"""Each promise of a rank program is a test; one launch of the program tries all of them.

A program decorates functions with `promise` (ranks/promising.py).
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.model.environment import MPIS
from tests.sharing import MadeOnce
from tests.starting import Start

PROGRAMS = Path(__file__).parent / "ranks"
PROMISES = {
    "many": (2, MPIS),  # any number of operations and communicators in flight
    "handlers": (2, MPIS),  # errors are MPI's, and a communicator's error handler sees them
    "interrupts": (2, MPIS),  # after Ctrl-C, unlike calls and lost ranks: errors, no wrong memory
    "noted": (3, ("openmpi", "mpich")),  # calls of MPI wait for nobody for whom MPI does not
    "one_rank_fails": (3, ("openmpi",)),  # a failure of one rank is an error on all, never a hang
    "plans": (2, MPIS),  # persistent calls are what MPI's are
    "sizes": (3, MPIS),  # entries of functions of the program have any size
    "serialized": (2, ("openmpi", "mpich")),  # any thread may make the next call
    "starts": (2, ("openmpi", "mpich")),  # a signal in a start takes no memory from its operation
    "progress": (2, MPIS),  # every wait lets everything else go on: MPI-4.1, section 3.9
}
"""Ranks and MPIs of each program."""
RARE = {(program, "mpich") for program in ("many", "serialized", "sizes", "starts")}
"""Up to a minute each."""
ENVIRONMENT = {"serialized": {"MPI4PY_RC_THREAD_LEVEL": "serialized"}}
NO_SINGLE_COPY = {
    "openmpi": {"OMPI_MCA_smsc": "^cma,xpmem,knem"},
    "mpich": {"MPIR_CVAR_CH4_CMA_ENABLE": "0"},
    "impi": {},
}
"""For `progress`: as in a container that may not read other processes' memory, a long message needs
its sender while it is received."""

pytestmark = pytest.mark.ranks


def promises() -> Iterator[Any]:
    for program, (ranks, mpis) in PROMISES.items():
        tree = ast.parse((PROGRAMS / f"{program}.py").read_text(encoding="utf-8"))
        for function in tree.body:
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(each, ast.Name) and each.id == "promise"
                for each in function.decorator_list
            ):
                for mpi in mpis:
                    yield pytest.param(
                        *(program, ranks, mpi, function.name),
                        id=f"{program}-{function.name}-{mpi}",
                        marks=[pytest.mark.rare] * ((program, mpi) in RARE),
                    )


@pytest.fixture
def launch(mpirun_in: Start, made_once: MadeOnce, tmp_path: Path) -> Callable[..., str]:
    """launch(program, ranks, mpi, *promises): what it prints; without promises, launched once."""

    def run(program: str, ranks: int, mpi: str, *promises: str) -> str:
        def ranks_in(folder: Path) -> str:
            env = NO_SINGLE_COPY[mpi] if program == "progress" else ENVIRONMENT.get(program, {})
            how = {"mpi": mpi, "env": env, "timeout": 200, "code": 0 if promises else None}
            output = mpirun_in(folder, PROGRAMS / f"{program}.py", ranks, *promises, **how).output
            (folder / "output").write_text(output, encoding="utf-8")
            return str(output)

        if promises:
            return ranks_in(tmp_path)
        folder = made_once(f"{program}-{mpi}", ranks_in)
        return (folder / "output").read_text(encoding="utf-8")

    return run


@pytest.mark.rare
@pytest.mark.parametrize("mpi", MPIS)
def test_a_thousand_communicators_have_operations_in_flight(mpirun: Start, mpi: str) -> None:
    env = {"HBMCOMM_TEST_MANY": "1000"}
    done = mpirun(PROGRAMS / "many.py", 2, mpi=mpi, env=env, timeout=280)
    assert done.output.count("kept the_first_of_many") == 2 * 4


@pytest.mark.parametrize(("program", "ranks", "mpi", "promise"), list(promises()))
def test_ranks_keep_a_promise(
    launch: Callable[..., str], program: str, ranks: int, mpi: str, promise: str
) -> None:
    """One not kept in the common launch is tried alone: another may have broken it."""
    kept = f"kept {promise}"
    if launch(program, ranks, mpi).split("\n").count(kept) != ranks:
        alone = launch(program, ranks, mpi, promise)
        assert alone.split("\n").count(kept) == ranks, alone
