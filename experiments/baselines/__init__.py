"""What Python offers without MPI, measured like everything else: threads and multiprocessing."""
