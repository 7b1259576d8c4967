"""Collectives of ranks on several hosts: the core inside each host, messages of MPI between."""
