"""What the ranks themselves need to measure: numpy, mpi4py, hbmcomm and nothing more."""
