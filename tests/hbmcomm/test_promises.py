"""Rank programs keep all their promises: functions that they decorate with `promise`.

To try some alone: mpiexec -n 2 python tests/hbmcomm/transports/ranks/plans.py test_never_blocks
"""

from collections import defaultdict
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from tests.left import nothing_left
from tests.starting import Start

HERE = Path(__file__).parent
PROMISES = {
    "ranks/sharing": (3, MPIS),  # ranks read and write each other's arrays, and wait for flags
    "ranks/dlpack_alone": (2, ("mpich",)),  # objects that offer DLPack alone are read
    "ranks/drop_in": (3, MPIS),  # what a Communicator promises beside its collectives
    "ranks/next_transport": (3, MPIS),  # auto goes to the next transport on all ranks alike
    "ranks/refused_alike": (3, MPIS),  # what mpi4py refuses is refused with the same error
    "transports/ranks/buffers": (2, ("openmpi", "mpich")),  # arrays of other libraries, read in C
    "transports/ranks/methods": (2, ("openmpi",)),  # methods in C take arguments as Python does
    "transports/ranks/plans": (2, MPIS),  # persistent calls are what MPI's are
    "transports/ranks/handlers": (2, MPIS),  # errors are MPI's; error handlers see them
    "transports/ranks/many": (2, MPIS),  # any number of operations and communicators in flight
    "transports/ranks/interrupts": (2, MPIS),  # after Ctrl-C and lost ranks: errors, right memory
    "transports/ranks/mismatch": (3, ("openmpi",)),  # calls that differ are named on all ranks
    "transports/ranks/misuse": (3, MPIS),  # threads, forks, signals and careless ends do no harm
    "transports/ranks/noted": (3, ("openmpi", "mpich")),  # calls of MPI wait only where MPI does
    "transports/ranks/objects": (3, MPIS),  # lower-case calls are what mpi4py's are
    "transports/ranks/one_rank_fails": (3, ("openmpi",)),  # one rank's failure is an error on all
    "transports/ranks/progress": (2, MPIS),  # every wait lets all else go on: MPI-4.1, section 3.9
    "transports/ranks/reductions": (3, MPIS),  # of pairs, by functions of the program, of floats
    "transports/ranks/serialized": (2, ("openmpi", "mpich")),  # any thread makes the next call
    "transports/ranks/starts": (2, ("openmpi", "mpich")),  # a signal takes no memory from a call
    "transports/ranks/vectors": (3, ("openmpi", "mpich")),  # calls with counts are mpi4py's, in C
    "ranks/wrapping": (3, MPIS),  # what is wrapped or derived is what mpi4py gives
}
"""Ranks and MPIs of each program, in the order in which they share a launch.

`sharing` looks at where its process gets memory, and is the first.
"""
ALONE = {
    "ranks/next_transport",  # changes the transports of its process
    "transports/ranks/interrupts",  # leaves an interrupt for the next call
    *(f"transports/ranks/{name}" for name in ("misuse", "objects", "one_rank_fails", "starts")),
    *(f"transports/ranks/{name}" for name in ("progress", "serialized")),  # see `environment`
}
"""Programs with a launch of their own. Four of them look at all memory of their process."""
RARE = {
    *(f"{program}-mpich" for program in ("ranks/refused_alike", "ranks/next_transport")),
    *(
        f"transports/ranks/{name}-mpich"
        for name in ("many", "misuse", "objects", "serialized", "starts", "vectors")
    ),
}
"""Up to a minute each; under Open MPI they run in CI."""
NO_SINGLE_COPY = {
    "openmpi": {"OMPI_MCA_smsc": "^cma,xpmem,knem"},
    "mpich": {"MPIR_CVAR_CH4_CMA_ENABLE": "0"},
    "impi": {},
}
"""For `progress`: as in a container that may not read other processes' memory, a long message needs
its sender while it is received."""

pytestmark = pytest.mark.ranks


def environment(program: str, mpi: str) -> dict[str, str]:
    if program.endswith("progress"):
        return NO_SINGLE_COPY[mpi]
    return {"MPI4PY_RC_THREAD_LEVEL": "serialized"} if program.endswith("serialized") else {}


def launches() -> list[object]:
    """(MPI, ranks, programs): those that may share a launch do; rare ones only with rare ones."""
    shared: dict[tuple[str, int, bool, str], list[str]] = defaultdict(list)
    for program, (ranks, mpis) in PROMISES.items():
        for mpi in mpis:
            is_rare, own = f"{program}-{mpi}" in RARE, program if program in ALONE else ""
            shared[mpi, ranks, is_rare, own].append(program)
    return [
        pytest.param(
            *(mpi, ranks, programs),
            id=f"{mpi}-{'-'.join(program.rpartition('/')[2] for program in programs)}",
            marks=[pytest.mark.rare] * is_rare,
        )
        for (mpi, ranks, is_rare, _), programs in shared.items()
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("mpi", "ranks", "programs"), launches())
def test_ranks_keep_all_promises(mpirun: Start, mpi: str, ranks: int, programs: list[str]) -> None:
    paths = [str(HERE / f"{program}.py") for program in programs]
    env = environment(programs[0], mpi)
    with nothing_left("hbmcomm.*"):
        done = mpirun("tests.hbmcomm.ranks.promising", ranks, *paths, mpi=mpi, env=env, timeout=500)
    assert done.output.count("kept all") == ranks * len(programs), done.output


@pytest.mark.rare
@pytest.mark.parametrize("mpi", MPIS)
def test_a_thousand_communicators_have_operations_in_flight(mpirun: Start, mpi: str) -> None:
    env = {"HBMCOMM_TEST_MANY": "1000"}
    done = mpirun(HERE / "transports/ranks/many.py", 2, mpi=mpi, env=env, timeout=280)
    assert done.output.count("kept the_first_of_many") == 2 * 4
