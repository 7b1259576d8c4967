"""The data paths that an MPI reports through its tool interface, MPI_T.

Knows which of its variables say something; experiments/analysis/mpi_transport_log.py
says what they mean.
"""

import ctypes

from mpi4py import MPI

from experiments.programs.machine.copies import copies

ASKED = {
    "Open MPI": ("btl_sm_flags",),
    "MPICH": ("MPIR_CVAR_CH4_CMA_ENABLE", "MPIR_CVAR_NOLOCAL"),
    "Intel MPI": ("MPIR_CVAR_INTEL_SHM_CMA",),
}
"""Integer control variables of each MPI. Open MPI takes the flags for put and get (2 and 4) out of
btl_sm_flags as soon as it cannot copy from one neighbour's memory at once."""

NOT_TOLD = "not told"


def report(comm: MPI.Intracomm) -> dict[str, str]:
    """The MPI's own report, and how often one message was copied; a collective.

    For the end of a launch: it sends messages of its own.

    Returns:
        "library": its name; "ranks": how many; "nodes": on how many nodes it believes them to be;
        "copies": copies.copies(); and each of ASKED that it has.
    """
    library = MPI.get_vendor()[0]
    found = {"library": library, "ranks": str(comm.size), "nodes": str(_nodes(comm))}
    found["copies"] = copies(comm)
    return found | {name: variable(name) for name in ASKED.get(library, ())}


def variable(name: str) -> str:
    """An integer control variable of the MPI that this process holds; "not told" without it."""
    library = ctypes.CDLL(MPI.__file__)  # finds the symbols of the libmpi that mpi4py is bound to
    provided = ctypes.c_int()
    if library.MPI_T_init_thread(MPI.THREAD_SINGLE, ctypes.byref(provided)):
        return NOT_TOLD
    try:
        return _value(library, name)
    finally:
        library.MPI_T_finalize()


def _value(library: ctypes.CDLL, name: str) -> str:
    index, handle, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    if library.MPI_T_cvar_get_index(name.encode(), ctypes.byref(index)):
        return NOT_TOLD
    if library.MPI_T_cvar_handle_alloc(index, None, ctypes.byref(handle), ctypes.byref(count)):
        return NOT_TOLD
    room = (ctypes.c_int * max(count.value, 2))()  # two: the type may be a 64-bit integer
    failed = library.MPI_T_cvar_read(handle, room)
    library.MPI_T_cvar_handle_free(ctypes.byref(handle))
    return NOT_TOLD if failed else str(room[0])


def _nodes(comm: MPI.Intracomm) -> int:
    """Number of groups of ranks that share memory, as the MPI sees it."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    leaders: int = comm.allreduce(int(node.rank == 0))
    node.Free()
    return leaders
