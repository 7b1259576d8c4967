"""Collectives: the C core, mpi4py's buffers as it wants them, and the transports."""
