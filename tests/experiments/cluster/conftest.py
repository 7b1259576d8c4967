"""One cluster for all tests: to start slurmctld takes longer than most of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.emulation.keepers import HostsRefused
from experiments.model.environment import MPIS
from experiments.provision import mpi_wheels
from tests import slurm_cluster
from tests.slurm_cluster import Cluster


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with two emulated nodes, and a site for it."""
    if why := slurm_cluster.lacking():
        pytest.skip(why)
    for flavour in MPIS:
        mpi_wheels.ensure(flavour, print)  # pip reaches no registry from emulated hosts
    folder: Path = tmp_path_factory.mktemp("slurm")
    try:
        with slurm_cluster.running(folder) as cluster:
            cluster.write_site()
            yield cluster
    except HostsRefused as refused:
        pytest.skip(str(refused))
