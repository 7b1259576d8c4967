"""The allocation that this process runs in: nodes that a batch system lent to one job."""

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Launches

SYSTEMS = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "FLUX_ENCLOSING_ID": "Flux",
}
"""Batch systems, by the variable that holds a job's number."""
SLURM = SYSTEMS["SLURM_JOB_ID"]


@dataclass(frozen=True)
class Allocation:
    """A job's nodes.

    Attributes:
        system: one of SYSTEMS.
        nodes: how many; 0 where the batch system does not say.
    """

    system: str
    job: str
    nodes: int


def held(environment: Mapping[str, str]) -> Allocation | None:
    """The allocation that a process with these variables runs in."""
    for variable, system in SYSTEMS.items():
        if job := environment.get(variable):
            return Allocation(system, job, int(environment.get("SLURM_JOB_NUM_NODES", 0)))
    return None


def check(found: Allocation | None, asked: Launches) -> None:
    """Refuse a campaign that needs more nodes or another launcher than an allocation has.

    Raises:
        ExperimentsError: with what to ask for.
    """
    if found is None:
        raise ExperimentsError(
            "this process runs in no allocation of a batch system, and the campaign needs "
            f"{asked.nodes} nodes: submit it with ./inv run, or hold an allocation"
        )
    if 0 < found.nodes < asked.nodes:
        raise ExperimentsError(
            f"{asked.nodes} nodes were asked for and job {found.job} has {found.nodes}: ask for "
            f"as many with --nodes {found.nodes}, or for a larger allocation"
        )
    if found.system != SLURM and asked.launcher == "srun":
        raise ExperimentsError(
            f"job {found.job} is one of {found.system}, which has no srun: pass --launcher mpiexec"
        )
