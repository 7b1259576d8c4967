"""Rank program: random calls on a Communicator give what mpi4py gives, bit for bit.

Rank 0 draws the cases with hypothesis and hands each to all; every rank does the call twice, once
on mpi4py's communicator and once on ours, from equal buffers, and says whether the outcomes (the
buffers afterwards, or the error) are equal. Usage: same_as_mpi4py.py TRANSPORT CASES
"""

import sys
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mpi4py import MPI

import hbmcomm

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
DTYPES = ("i1", "u2", "i4", "i8", "f4", "f8", "c8", "c16")
OPERATIONS = ("SUM", "PROD", "MAX", "MIN", "LAND", "BOR", "BXOR", "USER")
CALLS = (
    *("Bcast", "Gather", "Scatter", "Allgather", "Alltoall"),
    *("Reduce", "Allreduce", "Reduce_scatter_block", "Barrier"),
)
SEND_BLOCKS = ("Scatter", "Alltoall", "Reduce_scatter_block")
RECV_BLOCKS = ("Gather", "Allgather", "Alltoall")
FORMS = ("array", "[array, type]", "[array, count, type]")
USER = MPI.Op.Create(lambda a, b, datatype: _larger_bytes(a, b), commute=True)


def _larger_bytes(given: Any, kept: Any) -> None:
    np.maximum(np.asarray(given), np.asarray(kept), out=np.asarray(kept))


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    call = draw(st.sampled_from(CALLS))
    return {
        "call": call,
        "dtype": draw(st.sampled_from(DTYPES)),
        "count": draw(st.sampled_from([0, 1, 2, 7, 64, 1000, 20000])),
        "root": draw(st.integers(0, RANKS - 1)),
        "op": draw(st.sampled_from(OPERATIONS)),
        "form": draw(st.sampled_from(FORMS)),
        "in_place": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**16)),
    }


def buffers(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Send and receive memory of this rank: small whole numbers, so that sums are exact."""
    rng = np.random.default_rng([case["seed"], RANK])
    given = RANKS if case["call"] in SEND_BLOCKS else 1
    taken = RANKS if case["call"] in RECV_BLOCKS else 1
    make = lambda factor: rng.integers(0, 3, factor * case["count"]).astype(case["dtype"])  # noqa: E731
    return make(given), make(taken)


def spec(case: dict[str, Any], array: np.ndarray, blocks: int = 1) -> Any:
    """A buffer in the case's form; a count is that of one block."""
    datatype = MPI._typedict[array.dtype.char]
    if case["form"] == "array":
        return array
    if case["form"] == "[array, type]":
        return [array, datatype]
    return [array, array.size // blocks, datatype]


def arguments(case: dict[str, Any], send: np.ndarray, recv: np.ndarray) -> list[Any]:
    call, root = case["call"], case["root"]
    at_root = root == RANK
    op = USER if case["op"] == "USER" else getattr(MPI, case["op"])
    given = spec(case, send, RANKS if call in SEND_BLOCKS else 1)
    taken = spec(case, recv, RANKS if call in RECV_BLOCKS else 1)
    if call == "Barrier":
        return []
    if call == "Bcast":
        return [given, root]
    if call == "Gather":
        in_place = case["in_place"] and at_root
        return [MPI.IN_PLACE if in_place else given, taken if at_root else None, root]
    if call == "Scatter":
        in_place = case["in_place"] and at_root
        return [given if at_root else None, MPI.IN_PLACE if in_place else taken, root]
    if call in ("Allgather", "Alltoall"):
        return [MPI.IN_PLACE if case["in_place"] else given, taken]
    if call == "Reduce":
        in_place = case["in_place"] and at_root
        return [MPI.IN_PLACE if in_place else given, taken if at_root else None, op, root]
    if call == "Allreduce":
        return [MPI.IN_PLACE if case["in_place"] else given, taken, op]
    return [given, taken, op]


def outcome(comm: MPI.Intracomm, case: dict[str, Any]) -> tuple[str, bytes, bytes]:
    """The error, if any, and the bytes of both buffers afterwards."""
    send, recv = buffers(case)
    try:
        getattr(comm, case["call"])(*arguments(case, send, recv))
    except (MPI.Exception, ValueError, TypeError, KeyError) as error:
        return type(error).__name__, b"", b""
    return "", send.tobytes(), recv.tobytes()


def legal(case: dict[str, Any]) -> bool:
    """Whether MPI defines the operation for the dtype; else each rank errs before it sends."""
    kind = np.dtype(case["dtype"]).kind
    return not (
        (kind == "c" and case["op"] in ("MAX", "MIN", "LAND", "USER"))
        or (kind in "fc" and case["op"] in ("BOR", "BXOR", "LAND"))
    )


def agree(ours: MPI.Intracomm, case: dict[str, Any]) -> None:
    same = outcome(WORLD, case) == outcome(ours, case)
    verdicts = WORLD.gather(same)
    if verdicts is not None and not all(verdicts):
        raise AssertionError(f"ranks {[r for r, v in enumerate(verdicts) if not v]} differ: {case}")


def main(transport: str, number: int) -> None:
    with hbmcomm.Communicator(WORLD, kind="regular", transport=transport) as ours:
        if RANK == 0:

            @settings(
                max_examples=number,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(cases().filter(legal))
            def every_case(case: dict[str, Any]) -> None:
                WORLD.bcast(case)
                agree(ours, case)

            try:
                every_case()
            finally:
                WORLD.bcast(None)
            print(f"{number} cases alike on {RANKS} ranks")
        else:
            while (case := WORLD.bcast(None)) is not None:
                agree(ours, case)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
