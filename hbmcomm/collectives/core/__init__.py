"""The C core: its only importer, its thresholds, and progress of MPI."""
