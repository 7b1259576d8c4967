"""Launches of the baselines: their commands, and which cells each of them measures. Pure.

A baseline takes the turns of a transport that it is compared with: `mpi` (its calls take buffers)
or `pickle` (its calls take objects). Its results name the way that the data took instead.
"""

from collections.abc import Mapping

from experiments.model.contender_names import PLAIN
from experiments.model.launch import Cell
from experiments.model.lower_bound import COPY

THREADS, PROCESSES = "threads", "multiprocessing"
COUNTERPARTS: Mapping[str, Mapping[str, str]] = {
    THREADS: {"mpi": "threads"},
    PROCESSES: {"mpi": "shared_memory", "pickle": "queues"},
}
"""By program: the transport that it replaces, and the name of its own."""
COUNTERPART = {own: taken for ways in COUNTERPARTS.values() for taken, own in ways.items()}
"""By a baseline's own transport: the transport that it replaces."""
RUN = "experiments.baselines.run"  # the module that starts their ranks
OPERATIONS = ("bcast", "gather", "allreduce")
KIND, LOCALITY = "regular", "local"  # arrays as NumPy and multiprocessing.shared_memory make them

DIFFERENCES = {
    THREADS: (
        "threads share one interpreter: NumPy copies and adds without its lock, and all else in "
        "them takes turns"
    ),
    PROCESSES: (
        "multiprocessing copies within multiprocessing.shared_memory behind its Barrier, or sends "
        "pickled arrays through its SimpleQueue"
    ),
}
"""Differences in a comparison with the transport that it replaces."""


def holds(program: str, kind: str, locality: str) -> bool:
    """Whether a program has buffers of a kind and locality; all but baselines have any."""
    return program not in COUNTERPARTS or (kind, locality) == (KIND, LOCALITY)


def measures(program: str, cell: Cell) -> bool:
    """Whether a baseline can measure a cell."""
    if not holds(program, cell.kind, cell.locality):
        return False
    if cell.operation == COPY:
        return True
    way = cell.transport in COUNTERPARTS[program] and cell.form == PLAIN
    return way and cell.operation in OPERATIONS
