"""Prints the files that a rank maps code from, one on a line: Python, the suite and its MPI."""

from pathlib import Path

from mpi4py import MPI  # loads what the MPI chooses here

import experiments.programs.harness
import hbmcomm

LOADED = (MPI, experiments.programs.harness, hbmcomm)


def mapped(maps: str) -> list[str]:
    """The files among mappings that may be executed.

    Args:
        maps: of a process, as proc_pid_maps(5) has them.
    """
    lines = (line.split(maxsplit=5) for line in maps.splitlines())
    files = {line[5] for line in lines if len(line) == 6 and "x" in line[1]}
    return sorted(path for path in files if path.startswith("/") and " (deleted)" not in path)


if __name__ == "__main__":
    print("\n".join(mapped(Path("/proc/self/maps").read_text(encoding="utf-8"))))
