"""The C core: the one importer of it, its thresholds, and progress of MPI."""
