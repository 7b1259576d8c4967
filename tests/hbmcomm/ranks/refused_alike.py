"""Rank program: what mpi4py refuses, a Communicator refuses with the same error and words.

Every rank makes the same mistake, so that none waits for another.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.promising import keep, promise

Call = Callable[[MPI.Intracomm], object]

BAD_BUFFERS: dict[str, Callable[[], Any]] = {
    "no buffer": object,
    "nothing": lambda: None,
    "text": lambda: "12345678",
    "a number": lambda: 3,
    "strided": lambda: np.zeros(8)[::2],
    "backwards": lambda: np.zeros(4)[::-1],
    "of another byte order": lambda: np.zeros(4, ">f8"),
    "of objects": lambda: np.array([None] * 4),
    "of records": lambda: np.zeros(4, "i4,f8"),
    "of dates": lambda: np.zeros(4, "M8[s]"),
    "read-only": lambda: bytes(32),
    "nothing in a list": list,
    "one thing in a list": lambda: [np.zeros(4)],
    "five things in a list": lambda: [np.zeros(4), 1, 0, MPI.DOUBLE, None],
    "negative count": lambda: [np.zeros(4), -1],
    "half a count": lambda: [np.zeros(4), 1.5],
    "negative displacement": lambda: [np.zeros(4), (1, -1), MPI.DOUBLE],
    "displacement past the end": lambda: [np.zeros(4), (1, 99), MPI.DOUBLE],
    "three counts": lambda: [np.zeros(4), (1, 1, 1), MPI.DOUBLE],
    "unknown type": lambda: [np.zeros(4), "nonsense"],
    "a number for type": lambda: [np.zeros(4), 4, 8],
    "null type": lambda: [np.zeros(4), 4, MPI.DATATYPE_NULL],
    "elements of no memory": lambda: [None, 2, MPI.INT],
    "memory of no type": lambda: [None, 0],
    "part of an element": lambda: [bytearray(9), MPI.DOUBLE],
}

CALLS_OF_ONE_BAD_BUFFER: dict[str, Callable[[MPI.Intracomm, Any], object]] = {
    "Bcast": lambda comm, bad: comm.Bcast(bad),
    "Gather from": lambda comm, bad: comm.Gather(bad, np.zeros(4)),
    "Gather into": lambda comm, bad: comm.Gather(np.zeros(4), bad),
    "Scatter from": lambda comm, bad: comm.Scatter(bad, np.zeros(4)),
    "Scatter into": lambda comm, bad: comm.Scatter(np.zeros(4), bad),
    "Allgather from": lambda comm, bad: comm.Allgather(bad, np.zeros(4)),
    "Allgather into": lambda comm, bad: comm.Allgather(np.zeros(4), bad),
    "Alltoall from": lambda comm, bad: comm.Alltoall(bad, np.zeros(4)),
    "Alltoall into": lambda comm, bad: comm.Alltoall(np.zeros(4), bad),
    "Reduce from": lambda comm, bad: comm.Reduce(bad, np.zeros(4)),
    "Reduce into": lambda comm, bad: comm.Reduce(np.zeros(4), bad),
    "Allreduce from": lambda comm, bad: comm.Allreduce(bad, np.zeros(4)),
    "Allreduce into": lambda comm, bad: comm.Allreduce(np.zeros(4), bad),
}

BAD_CALLS: dict[str, Call] = {
    "root past the end": lambda comm: comm.Bcast(np.zeros(4), root=comm.size),
    "negative root": lambda comm: comm.Bcast(np.zeros(4), -7),
    "gather to nobody": lambda comm: comm.Gather(np.zeros(4), None, comm.size),
    "scatter from nobody": lambda comm: comm.Scatter(None, np.zeros(4), comm.size),
    "reduce to nobody": lambda comm: comm.Reduce(np.zeros(4), None, root=comm.size),
    "no null operation": lambda comm: comm.Allreduce(np.zeros(4), np.zeros(4), MPI.OP_NULL),
    "uneven blocks": lambda comm: comm.Allgather(np.zeros(2), np.zeros(2 * comm.size + 1)),
    "uneven halves": lambda comm: comm.Alltoall(np.zeros(comm.size + 1), np.zeros(comm.size)),
    "two counts": lambda comm: comm.Allreduce(np.zeros(4), np.zeros(3)),
    "a sum into nothing": lambda comm: comm.Allreduce(np.zeros(4), None),  # type: ignore[arg-type]
    "a prefix into nothing": lambda comm: comm.Scan(np.zeros(4), None),  # type: ignore[arg-type]
    "two types": lambda comm: comm.Allreduce(np.zeros(4), np.zeros(4, "i8")),
    "no sum of truths": lambda comm: comm.Allreduce(np.zeros(4, "?"), np.zeros(4, "?")),
}

MISUSES: dict[str, Call] = {
    "no buffer at all": lambda comm: comm.Bcast(),  # type: ignore[call-arg]
    "unknown keyword": lambda comm: comm.Bcast(np.zeros(4), source=0),  # type: ignore[call-arg]
    "one too many": lambda comm: comm.Bcast(np.zeros(4), 0, 0),  # type: ignore[call-arg]
    "no buffer for a plan": lambda comm: comm.Bcast_init(),  # type: ignore[call-arg]
    "too many for a plan": lambda comm: comm.Barrier_init(MPI.INFO_NULL, 0),  # type: ignore[call-arg]
    "a word for root": lambda comm: comm.Bcast(np.zeros(4), "0"),  # type: ignore[arg-type]
    "a word for operation": lambda comm: comm.Allreduce(np.zeros(4), np.zeros(4), "SUM"),  # type: ignore[arg-type]
}


def refusal(call: Call, comm: MPI.Intracomm) -> tuple[str, object]:
    """The error's type and words; instead of MPI's own words, which name handles, its class."""
    try:
        call(comm)
    except MPI.Exception as error:
        return "MPI.Exception", error.error_class
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


@promise("direct", "mpi", "pickle")
def refused_alike(transport: str) -> None:
    """One rank alone, so that every mistake stays its own."""
    theirs, ours = MPI.COMM_SELF, Communicator(MPI.COMM_SELF, "regular", transport)
    for call_name, call in CALLS_OF_ONE_BAD_BUFFER.items():
        for name, make in BAD_BUFFERS.items():
            wanted = refusal(lambda comm: call(comm, make()), theirs)  # noqa: B023
            raised = refusal(lambda comm: call(comm, make()), ours)  # noqa: B023
            assert raised == wanted, f"{transport} {call_name} {name}: {raised} is not {wanted}"
    ours.Free()


@promise("direct", "mpi", "pickle")
def refused_alike_together(transport: str) -> None:
    theirs, ours = MPI.COMM_WORLD.Dup(), Communicator(MPI.COMM_WORLD, "regular", transport)
    for name, call in BAD_CALLS.items():
        wanted, raised = refusal(call, theirs), refusal(call, ours)
        assert wanted[0], f"mpi4py takes: {name}"
        assert raised == wanted, f"{transport} {name}: {raised} is not {wanted}"
    for name, call in MISUSES.items():
        wanted, raised = refusal(call, theirs), refusal(call, ours)
        assert raised[0] == wanted[0] == "TypeError", f"{transport} {name}: {raised}, {wanted}"
    ours.Free()
    theirs.Free()


@promise("direct", "mpi", "pickle")
def signatures_are_mpi4pys(transport: str) -> None:
    ours = type(Communicator(MPI.COMM_SELF, "regular", transport))
    for face in ours.__mro__[: ours.__mro__.index(MPI.Intracomm)]:
        for name in vars(face):
            if name in vars(MPI.Intracomm) | vars(MPI.Comm) and name[0].isupper():
                theirs = inspect.signature(getattr(MPI.Intracomm, name))
                assert _arguments(inspect.signature(getattr(face, name))) == _arguments(theirs), (
                    name
                )


def _arguments(signature: inspect.Signature) -> list[tuple[str, str]]:
    return [(argument.name, repr(argument.default)) for argument in signature.parameters.values()]


if __name__ == "__main__":
    keep()
