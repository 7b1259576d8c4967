"""What a rank finds out about its machine and its MPI."""
