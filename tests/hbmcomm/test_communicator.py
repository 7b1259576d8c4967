"""A Communicator is the mpi4py communicator that it wraps, under every MPI and transport."""

from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from tests.starting import Start

PROGRAMS = Path(__file__).parent / "ranks"
TRANSPORTS = ("direct", "mpi", "pickle")

pytestmark = pytest.mark.ranks
of_every_mpi = pytest.mark.parametrize("mpi", MPIS)


@of_every_mpi
def test_what_mpi4py_refuses_is_refused_with_the_same_error(mpirun: Start, mpi: str) -> None:
    found = mpirun(PROGRAMS / "refused_alike.py", 3, mpi=mpi)
    assert found.output.count("refused alike") == 3


@of_every_mpi
def test_what_a_communicator_promises_beside_its_collectives_holds(mpirun: Start, mpi: str) -> None:
    found = mpirun(PROGRAMS / "drop_in.py", 3, mpi=mpi)
    assert found.output.count("kept") == 3


def test_arrays_in_fortran_order_give_what_they_give_with_mpi4py(mpirun: Start) -> None:
    transports = (*TRANSPORTS, "hierarchical")
    found = mpirun(PROGRAMS / "orders.py", 2, *transports)
    for transport in transports:
        assert found.output.count(f"{transport}: in order") == 2


def test_messages_cross_to_another_node_once(mpirun: Start) -> None:
    assert mpirun(PROGRAMS / "links.py", 5).output.count("counted") == 5


def test_objects_that_offer_dlpack_alone_are_read_as_by_mpi4py(mpirun: Start) -> None:
    found = mpirun(PROGRAMS / "dlpack_alone.py", 2, *TRANSPORTS, mpi="mpich")
    for transport in TRANSPORTS:
        assert found.output.count(f"{transport}: read") == 2


@of_every_mpi
def test_what_is_wrapped_or_derived_is_what_mpi4py_gives_and_goes_by_the_transport(
    mpirun: Start, mpi: str
) -> None:
    found = mpirun(PROGRAMS / "wrapping.py", 3, *TRANSPORTS, mpi=mpi)
    for transport in TRANSPORTS:
        assert found.output.count(f"{transport}: wrapped") == 3


def test_drawn_grids_and_graphs_are_what_mpi4py_makes(mpirun: Start) -> None:
    found = mpirun(PROGRAMS / "topologies.py", 2, *TRANSPORTS)
    for transport in TRANSPORTS:
        assert f"{transport}: every topology alike on 2 ranks" in found.output


@of_every_mpi
def test_auto_goes_to_the_next_transport_on_all_ranks_alike(mpirun: Start, mpi: str) -> None:
    assert mpirun(PROGRAMS / "next_transport.py", 3, mpi=mpi).output.count("went on") == 21
