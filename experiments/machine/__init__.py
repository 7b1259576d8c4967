"""What a rank records about its machine and its MPI."""
