"""One rank of an external program: pinned to its CPU, then that program.

`mpiexec ... python -m experiments.programs.imb_pinned CPU,CPU,... PROGRAM ARGUMENT ...`

Hydra gives each process its rank as PMI_RANK. Uses no MPI: the program that follows will.
"""

import os
import sys

from experiments.processes.executables import die_with_parent


def main(cpus: str, argv: list[str]) -> None:
    """Never returns."""
    cpu = int(cpus.split(",")[int(os.environ["PMI_RANK"])])
    os.sched_setaffinity(0, {cpu})
    die_with_parent()
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
