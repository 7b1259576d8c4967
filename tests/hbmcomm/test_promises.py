"""Rank programs keep all their promises: functions that they decorate with `promise`.

To try some alone: mpiexec -n 2 python tests/hbmcomm/transports/ranks/plans.py test_never_blocks
"""

from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from tests.left import nothing_left
from tests.starting import Start

HERE = Path(__file__).parent
PROMISES = {
    "ranks/dlpack_alone": (2, ("mpich",)),  # objects that offer DLPack alone are read
    "ranks/drop_in": (3, MPIS),  # what a Communicator promises beside its collectives
    "ranks/next_transport": (3, MPIS),  # auto goes to the next transport on all ranks alike
    "ranks/refused_alike": (3, MPIS),  # what mpi4py refuses is refused with the same error
    "ranks/wrapping": (3, MPIS),  # what is wrapped or derived is what mpi4py gives
    "transports/ranks/many": (2, MPIS),  # any number of operations and communicators in flight
    "transports/ranks/handlers": (2, MPIS),  # errors are MPI's; error handlers see them
    "transports/ranks/interrupts": (2, MPIS),  # after Ctrl-C and lost ranks: errors, right memory
    "transports/ranks/buffers": (2, ("openmpi", "mpich")),  # arrays of other libraries, read in C
    "transports/ranks/methods": (2, ("openmpi",)),  # methods in C take arguments as Python does
    "transports/ranks/mismatch": (3, ("openmpi",)),  # calls that differ are named on all ranks
    "transports/ranks/misuse": (3, MPIS),  # threads, forks, signals and careless ends do no harm
    "transports/ranks/noted": (3, ("openmpi", "mpich")),  # calls of MPI wait only where MPI does
    "transports/ranks/objects": (3, MPIS),  # lower-case calls are what mpi4py's are
    "transports/ranks/one_rank_fails": (3, ("openmpi",)),  # one rank's failure is an error on all
    "transports/ranks/plans": (2, MPIS),  # persistent calls are what MPI's are
    "transports/ranks/progress": (2, MPIS),  # every wait lets all else go on: MPI-4.1, section 3.9
    "transports/ranks/reductions": (3, MPIS),  # of pairs, by functions of the program, of floats
    "transports/ranks/serialized": (2, ("openmpi", "mpich")),  # any thread makes the next call
    "transports/ranks/starts": (2, ("openmpi", "mpich")),  # a signal takes no memory from a call
    "transports/ranks/vectors": (3, ("openmpi", "mpich")),  # calls with counts are mpi4py's, in C
}
"""Ranks and MPIs of each program."""
RARE = {
    *(f"{program}-mpich" for program in ("ranks/refused_alike", "ranks/next_transport")),
    *(
        f"transports/ranks/{name}-mpich"
        for name in ("many", "misuse", "objects", "serialized", "starts", "vectors")
    ),
}
"""Up to a minute each; under Open MPI they run in CI."""
ENVIRONMENT = {"transports/ranks/serialized": {"MPI4PY_RC_THREAD_LEVEL": "serialized"}}
NO_SINGLE_COPY = {
    "openmpi": {"OMPI_MCA_smsc": "^cma,xpmem,knem"},
    "mpich": {"MPIR_CVAR_CH4_CMA_ENABLE": "0"},
    "impi": {},
}
"""For `progress`: as in a container that may not read other processes' memory, a long message needs
its sender while it is received."""

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize(
    ("program", "mpi"),
    [
        pytest.param(program, mpi, marks=[pytest.mark.rare] * (f"{program}-{mpi}" in RARE))
        for program, (_, mpis) in PROMISES.items()
        for mpi in mpis
    ],
)
def test_ranks_keep_all_promises(mpirun: Start, program: str, mpi: str) -> None:
    ranks = PROMISES[program][0]
    env = NO_SINGLE_COPY[mpi] if program.endswith("progress") else ENVIRONMENT.get(program, {})
    with nothing_left("hbmcomm.*"):
        done = mpirun(HERE / f"{program}.py", ranks, mpi=mpi, env=env, timeout=200)
    assert done.output.count("kept all") == ranks, done.output


@pytest.mark.rare
@pytest.mark.parametrize("mpi", MPIS)
def test_a_thousand_communicators_have_operations_in_flight(mpirun: Start, mpi: str) -> None:
    env = {"HBMCOMM_TEST_MANY": "1000"}
    done = mpirun(HERE / "transports/ranks/many.py", 2, mpi=mpi, env=env, timeout=280)
    assert done.output.count("kept the_first_of_many") == 2 * 4
