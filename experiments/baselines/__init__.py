"""Python's own means without an MPI: threads and multiprocessing."""
