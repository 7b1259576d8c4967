"""Memory that ranks share: segments, the heap of each process, and arenas of all ranks."""
