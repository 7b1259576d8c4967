"""Nodes of an allocation: ranks started by srun or the MPI's mpiexec, in a container or without.

Ranks pin themselves, so no launcher does. Steps overlap: those of a block are alive together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments.mpiexec import AS_ROOT, YIELDING
from experiments.environments.process import FOLDER, Process
from experiments.environments.runtime import Contained
from experiments.model.launch import Launch

PROGRAM = "experiments.programs.on_a_node"
GRACE = 20.0  # seconds in which Slurm ends a step on all nodes
STEP = {"SLURM_OVERLAP": "1", "SLURM_OVERCOMMIT": "1", "SLURM_CPU_BIND": "none"}
"""What an mpiexec that starts its daemons by srun has to pass to srun."""


@dataclass(frozen=True)
class Slurm:
    """Launches over nodes, as many ranks on each.

    Attributes:
        prefix: the environment that holds the MPI, at the same path on all nodes.
        nodes: how many.
        cores: of a node.
        launcher: of LAUNCHERS.
        pmi: what srun offers the MPI.
        contained: what the ranks run in; None for the nodes' own files.
        variables: for the ranks, beside what the MPI needs.
    """

    prefix: Path
    nodes: int
    cores: int
    launcher: str
    pmi: str
    contained: Contained | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which all nodes see and which holds launch.json."""
        ppn = launch.ranks // self.nodes
        prefix = self.contained.prefix if self.contained else self.prefix
        needed = of_ranks(launch.mpi, prefix, crowded=ppn > self.cores) | dict(self.variables)
        options, words, seen = list[str](), list[str](), str(folder)
        if self.contained:
            named = f"{folder.parents[1].name}-{launch.name}"
            options, words, more = self.contained.words(named, ppn, folder, needed)
            needed, seen = needed | more, FOLDER
        if self.launcher == "srun":
            argv = [*self._srun(launch.ranks), *options]
        else:
            argv = self._mpiexec(launch.mpi, launch.ranks)
            needed |= STEP
        argv += [*words, str(prefix / "bin/python"), "-P", "-m", PROGRAM, seen]
        return Process(tuple(argv), needed, grace=GRACE, in_job=True)

    def _srun(self, ranks: int) -> list[str]:
        """The words that start ranks as a step; options and the program follow."""
        return [
            "srun",
            f"--mpi={self.pmi}",
            f"--nodes={self.nodes}",
            f"--ntasks={ranks}",
            f"--ntasks-per-node={ranks // self.nodes}",
            "--overlap",
            "--overcommit",
            "--cpu-bind=none",
            "--kill-on-bad-exit=1",
        ]

    def _mpiexec(self, flavour: str, ranks: int) -> list[str]:
        """The words of the MPI's own launcher, which finds the nodes of the allocation itself."""
        argv, ppn = [str(self.prefix / "bin/mpiexec"), "-n", str(ranks)], ranks // self.nodes
        if flavour == "openmpi":
            return [*argv, "--map-by", f"ppr:{ppn}:node:oversubscribe", "--bind-to", "none"]
        argv += ["-ppn", str(ppn)]
        return [*argv, "-bind-to", "none"] if flavour == "mpich" else argv


def of_ranks(flavour: str, prefix: Path, crowded: bool) -> dict[str, str]:
    """What ranks of an MPI need, however they are started.

    Args:
        prefix: the environment that holds it where the ranks run.
        crowded: whether a node has more ranks than cores; they yield while they wait.
    """
    environment = dict(YIELDING[flavour]) if crowded else {}
    if flavour == "openmpi":
        environment |= AS_ROOT
    if flavour == "impi":
        environment |= {"LD_LIBRARY_PATH": f"{prefix}/lib", "I_MPI_PIN": "0"}
    return environment
