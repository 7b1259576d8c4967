"""Transport `mpi`: mpi4py's buffer calls as they are, on arrays of a kind; the paper's method."""

from mpi4py import MPI


class Buffers(MPI.Intracomm):
    """Overrides nothing: the MPI library moves the data, and no Python stands before a call."""
