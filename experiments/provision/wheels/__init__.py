"""Wheels for the image, and an environment for each MPI."""
