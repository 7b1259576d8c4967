"""Which allocation a process runs in, and what it is too small for."""

import pytest

from experiments.cluster import allocation
from experiments.cluster.allocation import Allocation
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Launches


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"}, Allocation("Slurm", "7", 2)),
        ({"PBS_JOBID": "7.pbs"}, Allocation("PBS", "7.pbs", 0)),
        ({"LSB_JOBID": "7"}, Allocation("LSF", "7", 0)),
        ({"FLUX_ENCLOSING_ID": "f7"}, Allocation("Flux", "f7", 0)),
        ({"PATH": "/bin"}, None),
    ],
)
def test_a_job_is_known_by_its_variables(
    variables: dict[str, str], wanted: Allocation | None
) -> None:
    assert allocation.held(variables) == wanted


@pytest.mark.parametrize(
    ("found", "asked", "message"),
    [
        (None, Launches(nodes=2), "runs in no allocation"),
        (Allocation("Slurm", "7", 2), Launches(nodes=4), "job 7 has 2: ask for as many with"),
        (Allocation("PBS", "7", 0), Launches(), "no srun: pass --launcher mpiexec"),
    ],
)
def test_a_campaign_that_does_not_fit_is_refused(
    found: Allocation | None, asked: Launches, message: str
) -> None:
    with pytest.raises(ExperimentsError, match=message):
        allocation.check(found, asked)


def test_a_campaign_that_fits_is_not() -> None:
    allocation.check(Allocation("Slurm", "7", 2), Launches(nodes=2))
    allocation.check(Allocation("PBS", "7", 0), Launches(nodes=2, launcher="mpiexec"))
