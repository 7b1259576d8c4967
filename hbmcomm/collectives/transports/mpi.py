"""Transport `mpi`: mpi4py's buffer calls, unchanged, on arrays of a kind (as in the paper)."""

from hbmcomm.collectives.transports.transport import Transport


class Buffers(Transport):
    """Overrides nothing: the MPI library moves the data, with no Python before it."""
