"""Which allocation a process runs in, and what it is too small for."""

import pytest

from experiments.cluster import allocation
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Launches

OF_TWO = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"}


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        (OF_TWO, ("Slurm", "7")),
        ({"PBS_JOBID": "7.pbs"}, ("PBS", "7.pbs")),
        ({"LSB_JOBID": "7"}, ("LSF", "7")),
        ({"FLUX_ENCLOSING_ID": "f7"}, ("Flux", "f7")),
        ({"PATH": "/bin"}, None),
    ],
)
def test_a_job_is_known_by_its_variables(
    variables: dict[str, str], wanted: tuple[str, str] | None
) -> None:
    assert allocation.held(variables) == wanted


@pytest.mark.parametrize(
    ("variables", "asked", "message"),
    [
        ({}, Launches(nodes=2), "runs in no allocation"),
        (OF_TWO, Launches(nodes=4), "job 7 has 2: ask for as many with"),
        ({"PBS_JOBID": "7"}, Launches(), "no srun: pass --launcher mpiexec"),
    ],
)
def test_a_campaign_that_does_not_fit_is_refused(
    variables: dict[str, str], asked: Launches, message: str
) -> None:
    with pytest.raises(ExperimentsError, match=message):
        allocation.check(variables, asked)


def test_a_campaign_that_fits_is_not() -> None:
    allocation.check(OF_TWO, Launches(nodes=2))
    allocation.check({"PBS_JOBID": "7"}, Launches(nodes=2, launcher="mpiexec"))
