"""Rank program: errors of calls are MPI's, and a communicator's error handler sees them."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import CallMismatch, Communicator, HbmcommError, PeerError
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
TRANSPORTS = ("direct", "hierarchical")
seen: list[tuple[bool, int]] = []
"""What the handler got: whether its communicator has the rank of this one, and the code."""


def see(comm: MPI.Comm, code: int) -> None:
    seen.append((comm.rank == RANK, code))


def run_plan(comm: Any, started: bool) -> None:
    plan = comm.Allreduce_init(np.ones(3), np.zeros(3))
    if not started:
        plan()
    else:
        plan.Start()
        plan.Wait()


def until_complete(request: Any) -> None:
    while not request.Test():
        pass


WAYS: dict[str, Callable[[Any], Any]] = {
    "blocking": lambda comm: comm.Barrier(),
    "with arguments that Python reads": lambda comm: comm.Allgatherv(
        np.ones(1), [np.zeros(WORLD.size), [1] * WORLD.size]
    ),
    "Wait": lambda comm: comm.Iallreduce(np.ones(3), np.zeros(3)).Wait(),
    "Test": lambda comm: until_complete(comm.Iallreduce(np.ones(3), np.zeros(3))),
    "plan()": lambda comm: run_plan(comm, started=False),
    "Start and Wait": lambda comm: run_plan(comm, started=True),
    "lower case": lambda comm: comm.bcast("object"),
}


def broken(transport: str) -> Any:
    """A communicator on which the last rank makes another call than the others."""
    comm = Communicator(WORLD, "regular", transport)
    with refused(CallMismatch, "called Barrier()"):
        if comm.size - 1 == RANK:
            comm.Allreduce(np.ones(3), np.zeros(3))
        comm.Barrier()
    return comm


@promise
def errors_are_errors_of_mpi() -> None:
    comm = broken("direct")
    try:
        comm.Barrier()
    except MPI.Exception as error:
        assert isinstance(error, CallMismatch)
        assert error.error_string == str(error)
        assert "called Barrier()" in error.error_string
        assert MPI.Get_error_class(error.error_code) == error.Get_error_class() > MPI.ERR_LASTCODE
        assert MPI.Get_error_string(error.error_class) == "hbmcomm.CallMismatch"
        assert MPI.Get_error_string(error.error_code) in str(error)
        assert error.Get_error_class() != PeerError("other").Get_error_class()
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (CallMismatch, str(error))
        assert repr(error) == f"CallMismatch({str(error)!r})"
    else:
        raise AssertionError("no error")
    for transport in TRANSPORTS:
        comm = broken(transport)
        for way, call in WAYS.items():
            try:
                call(comm)
            except MPI.Exception as error:
                assert isinstance(error, HbmcommError), f"{transport}, {way}: {error!r}"
            else:
                raise AssertionError(f"{transport}, {way}: no error")
    comm.Free()
    with refused(MPI.Exception):
        comm.Barrier()


@promise
def a_handler_of_the_program_sees_each_error_before_it_is_raised() -> None:
    handler = MPI.Comm.Create_errhandler(see)
    for transport in TRANSPORTS:
        comm = broken(transport)
        comm.Set_errhandler(handler)
        for way, call in WAYS.items():
            seen.clear()
            with refused(HbmcommError):
                call(comm)
            assert [own for own, _ in seen] == [True], f"{transport}, {way}: {seen}"
            assert MPI.Get_error_string(MPI.Get_error_class(seen[0][1])).startswith("hbmcomm.")
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        seen.clear()
        with refused(HbmcommError):
            comm.Barrier()
        assert not seen
    handler.Free()


@promise
def a_handler_sees_the_misuse_of_a_plan() -> None:
    handler = MPI.Comm.Create_errhandler(see)
    for transport in TRANSPORTS:
        comm = Communicator(WORLD, "regular", transport)
        comm.Set_errhandler(handler)
        plan = comm.Barrier_init()
        plan.Free()
        seen.clear()
        with refused(MPI.Exception, "this plan was freed"):
            plan.Start()
        assert len(seen) == 1, f"{transport}: {seen}"
        comm.Free()
    handler.Free()


@promise
def a_communicator_shows_what_a_program_expects() -> None:
    class Mine(Communicator):
        """A class of the program."""

    for transport in (*TRANSPORTS, "mpi", "pickle"):
        with Communicator(WORLD, "regular", transport) as comm:
            assert isinstance(comm, hbmcomm.Communicator)
            assert isinstance(comm, MPI.Intracomm)
            kind = type(comm)
            shown = (kind.__module__, kind.__qualname__, kind.__doc__)
            assert shown == ("hbmcomm", "Communicator", Communicator.__doc__)
            assert repr(comm).startswith(f"<Communicator: rank {RANK} of {WORLD.size}")
            for act in (copy.copy, copy.deepcopy, pickle.dumps):
                with refused(ValueError, "cannot serialize 'hbmcomm.Communicator' instance"):
                    act(comm)
    assert pickle.loads(pickle.dumps(Communicator)) is Communicator
    with Mine(WORLD, "regular", "direct") as own:
        assert type(own).__qualname__ == Mine.__qualname__
        assert isinstance(own, Mine)


if __name__ == "__main__":
    keep()
