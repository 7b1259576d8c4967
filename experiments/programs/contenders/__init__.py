"""What takes turns in a cell: direct, the MPI, pickle, gloo, another build."""
