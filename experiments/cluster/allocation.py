"""The allocation that this process runs in: nodes that a batch system lent to one job."""

from collections.abc import Mapping

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


def held(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """The batch system and the job that a process with these variables runs in."""
    for variable, system in SYSTEMS.items():
        if job := environment.get(variable):
            return system, job
    return None


def check(environment: Mapping[str, str], asked: Launches) -> None:
    """Refuse a campaign that needs more nodes or another launcher than the allocation has.

    Raises:
        ExperimentsError: with what to ask for.
    """
    found = held(environment)
    if found is None:
        raise ExperimentsError(
            "this process runs in no allocation of a batch system, and the campaign needs "
            f"{asked.nodes} nodes: submit it with ./inv run, or hold an allocation"
        )
    system, job = found
    nodes = int(environment.get("SLURM_JOB_NUM_NODES", 0))  # 0: only Slurm says how many
    if 0 < nodes < asked.nodes:
        raise ExperimentsError(
            f"{asked.nodes} nodes were asked for and job {job} has {nodes}: ask for "
            f"as many with --nodes {nodes}, or for a larger allocation"
        )
    if system != SLURM and asked.launcher == "srun":
        raise ExperimentsError(
            f"job {job} is one of {system}, which has no srun: pass --launcher mpiexec"
        )
