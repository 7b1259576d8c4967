"""What makes each MPI say which ways its messages take: a change shows here."""

import pytest

from experiments.environments.mpi.debug_output import asking
from experiments.model.environment import MPIS

GOLDEN = {
    "openmpi": "OMPI_MCA_hook_comm_method_display=mpi_init OMPI_MCA_smsc_base_verbose=1",
    "mpich": "MPIR_CVAR_DEBUG_SUMMARY=1 UCX_LOG_LEVEL=info",
    "impi": "I_MPI_DEBUG=5",
}


@pytest.mark.parametrize("flavour", MPIS)
def test_an_mpi_is_asked_by_variables(flavour: str) -> None:
    asked = " ".join(f"{name}={value}" for name, value in sorted(asking(flavour).items()))
    assert asked == GOLDEN[flavour]
