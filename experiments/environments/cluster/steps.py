"""How ranks are started over the nodes of an allocation: by srun, or by each MPI's mpiexec. Pure.

Ranks pin themselves, so no launcher does. Steps overlap: those of a block are alive together.
"""

from collections.abc import Sequence
from pathlib import Path

from experiments.environments.mpi.mpiexec import AS_ROOT, YIELDING

STEP = {"SLURM_OVERLAP": "1", "SLURM_OVERCOMMIT": "1", "SLURM_CPU_BIND": "none"}
"""What an mpiexec that starts its daemons by srun has to tell it."""


def srun(pmi: str, ranks: int, nodes: int, more: Sequence[str] = ()) -> list[str]:
    """The words that start ranks as a step; the program follows.

    Args:
        pmi: what srun offers the MPI.
        more: options of srun.
    """
    return [
        "srun",
        f"--mpi={pmi}",
        f"--nodes={nodes}",
        f"--ntasks={ranks}",
        f"--ntasks-per-node={ranks // nodes}",
        "--overlap",
        "--overcommit",
        "--cpu-bind=none",
        "--kill-on-bad-exit=1",
        *more,
    ]


def mpiexec(flavour: str, prefix: Path, ranks: int, nodes: int) -> list[str]:
    """The words that start ranks by the MPI's own launcher; the program follows.

    It finds the nodes of the allocation itself.

    Args:
        flavour: one of MPIS.
        prefix: the environment on the nodes that holds it.
    """
    argv = [str(prefix / "bin/mpiexec"), "-n", str(ranks)]
    each = ranks // nodes
    if flavour == "openmpi":
        return [*argv, "--map-by", f"ppr:{each}:node:oversubscribe", "--bind-to", "none"]
    return [*argv, "-ppn", str(each), *(("-bind-to", "none") if flavour == "mpich" else ())]


def variables(flavour: str, prefix: Path, crowded: bool) -> dict[str, str]:
    """What ranks of an MPI need, however they are started.

    Args:
        prefix: the environment that holds it where the ranks run.
        crowded: whether a node has more ranks than cores; they yield while they wait.
    """
    found = dict(YIELDING[flavour]) if crowded else {}
    if flavour == "openmpi":
        found |= AS_ROOT
    if flavour == "impi":
        found |= {"LD_LIBRARY_PATH": f"{prefix}/lib", "I_MPI_PIN": "0"}
    return found
