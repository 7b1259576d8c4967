"""Nodes of an allocation: ranks started by srun or the MPI's mpiexec, in a container or without."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments.cluster import steps
from experiments.environments.cluster.contained import Contained
from experiments.environments.docker import FOLDER
from experiments.environments.process import Process
from experiments.model.launch import Launch

PROGRAM = "experiments.programs.on_a_node"
GRACE = 20.0  # seconds in which Slurm ends a step on all nodes


@dataclass(frozen=True)
class Slurm:
    """Launches over nodes, as many ranks on each.

    Attributes:
        flavour: the MPI, one of MPIS.
        prefix: the environment that holds it, at the same path on all nodes.
        nodes: how many.
        cores: of a node.
        launcher: of LAUNCHERS.
        pmi: what srun offers the MPI.
        contained: what the ranks run in; None for the nodes' own files.
        variables: for the ranks, beside what the MPI needs.
    """

    flavour: str
    prefix: Path
    nodes: int
    cores: int
    launcher: str
    pmi: str
    contained: Contained | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which all nodes see and which holds launch.json."""
        each = launch.ranks // self.nodes
        prefix = self.contained.prefix if self.contained else self.prefix
        needed = steps.variables(self.flavour, prefix, crowded=each > self.cores)
        needed |= self.variables
        options: list[str] = []
        words: list[str] = []
        seen = str(folder)
        if self.contained:
            named = f"{folder.parents[1].name}-{launch.name}"
            options, words, more = self.contained.words(named, each, folder, needed)
            needed, seen = needed | more, FOLDER
        if self.launcher == "srun":
            argv = steps.srun(self.pmi, launch.ranks, self.nodes, options)
        else:
            argv = steps.mpiexec(self.flavour, self.prefix, launch.ranks, self.nodes)
            needed |= steps.STEP
        argv += [*words, str(prefix / "bin/python"), "-m", PROGRAM, seen]
        return Process(tuple(argv), needed, grace=GRACE, in_job=True)
