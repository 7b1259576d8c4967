"""What takes turns in a cell: direct, the MPI, pickle, torch's groups, another build."""
