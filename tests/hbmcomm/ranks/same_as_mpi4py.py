"""Rank program: random calls on a Communicator give what mpi4py gives, byte for byte.

Rank 0 draws cases of every call with hypothesis and hands each to all; every rank does the call on
mpi4py's communicator and on ours, from equal memory, and says whether the memory is equal
afterwards. Each rank writes its buffers in a form of its own. Usage: same_as_mpi4py.py TRANSPORT...
"""

import sys
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from mpi4py import MPI

from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size

MOVES = ("Bcast", "Gather", "Gatherv", "Scatter", "Allgather", "Alltoall")
REDUCTIONS = ("Reduce", "Allreduce", "Reduce_scatter_block", "Scan")
ROOTED = ("Bcast", "Gather", "Gatherv", "Scatter", "Reduce")
SENDS_BLOCKS = ("Scatter", "Alltoall", "Reduce_scatter_block")
TAKES_BLOCKS = ("Gather", "Allgather", "Alltoall")

OPERATIONS = {
    **dict.fromkeys(("SUM", "PROD"), "bhHiIlLqfdFD"),
    **dict.fromkeys(("MAX", "MIN"), "bhHiIlLqfd"),
    **dict.fromkeys(("LAND", "LOR", "LXOR"), "bhHiIlLq?"),
    **dict.fromkeys(("BAND", "BOR", "BXOR"), "bhHiIlLq"),
    "USER": "bhHiIlLqfdFD?",
}
"""The dtypes for which MPI defines each operation."""

CASES = 4  # of a reduction by one operation; the calls without one get CASES_OF_MOVES each
CASES_OF_MOVES = 25

PLAIN_FORMS = (
    *("array", "matrix", "memoryview", "[buffer, type]", "(buffer, code)", "[buffer, count]"),
    *("(buffer, count, type)", "[buffer, (count, place), code]", "(buffer, count, place, type)"),
)
DERIVED_FORMS = ("[buffer, type of its own]", "[every other element]")
MARGIN = 3  # elements before a message, and as many behind: nobody may touch them


@dataclass(frozen=True)
class Case:
    call: str
    dtype: str
    count: int
    root: int
    op: str
    send_form: int
    take_form: int
    in_place: bool
    in_place_is_none: bool
    keywords: bool
    seed: int


def cases(call: str, op: str) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        call=st.just(call),
        op=st.just(op),
        dtype=st.sampled_from(OPERATIONS[op] if op else "bBhHiIlLqfdFD?"),
        count=st.sampled_from((3, 0, 1, 2, 64, 1000, 20000)),
        root=st.integers(0, RANKS - 1),
        send_form=st.integers(0, 10),
        take_form=st.integers(0, 10),
        in_place=st.booleans(),
        in_place_is_none=st.booleans(),
        keywords=st.booleans(),
        seed=st.integers(0, 2**16),
    )


def larger_bytes(given: Any, kept: Any, datatype: MPI.Datatype) -> None:
    np.maximum(np.asarray(given), np.asarray(kept), out=np.asarray(kept))


class Memory:
    """One buffer of one rank: small whole numbers, so that sums are exact in any order."""

    def __init__(self, case: Case, form: int, blocks: int, role: int) -> None:
        forms = PLAIN_FORMS if case.call in REDUCTIONS else PLAIN_FORMS + DERIVED_FORMS
        self.form = forms[(form + RANK) % len(forms)]
        self.count, self.total = case.count, case.count * blocks
        rng = np.random.default_rng([case.seed, RANK, role])
        self.whole = rng.integers(0, 3, 2 * self.total + 2 * MARGIN).astype(case.dtype)
        self.datatype = MPI.Datatype.fromcode(case.dtype)

    def spec(self) -> Any:
        """The message in this rank's form; a count is that of one block."""
        own = self.whole[MARGIN : MARGIN + self.total]
        code = self.whole.dtype.char
        match self.form:
            case "array":
                return own
            case "matrix":
                return own.reshape(-1, 1 + (self.total + 1) % 2, order="F")
            case "memoryview":
                return memoryview(own)
            case "[buffer, type]":
                return [own, self.datatype]
            case "(buffer, code)":
                return (own, code)
            case "[buffer, count]":
                return [own, np.int32(self.count)]
            case "(buffer, count, type)":
                return (own if self.count else None, self.count, self.datatype)
            case "[buffer, (count, place), code]":
                return [self.whole, (self.count, MARGIN), code]
            case "(buffer, count, place, type)":
                return (self.whole, self.count, MARGIN, self.datatype)
            case "[buffer, type of its own]":
                return [own, self.count, self.datatype.Dup().Commit()]
            case "[every other element]":
                spaced = self.datatype.Create_resized(0, 2 * self.datatype.extent).Commit()
                return [self.whole[MARGIN:], self.count, spaced]
        raise AssertionError(self.form)


def arguments(case: Case, send: Memory, take: Memory, op: MPI.Op) -> dict[str, Any]:
    """mpi4py's arguments of the call on this rank, by name and in its order."""
    at_root = case.root == RANK
    stays = case.in_place and (at_root or case.call not in ROOTED)
    in_place = None if case.in_place_is_none else MPI.IN_PLACE
    root = {"root": case.root} if case.call in ROOTED else {}
    if case.call == "Barrier":
        return {}
    if case.call == "Bcast":
        return {"buf": send.spec()} | root
    if case.call == "Scatter":
        given = send.spec() if at_root else None
        return {"sendbuf": given, "recvbuf": in_place if stays else take.spec()} | root
    taken = take.spec() if at_root or case.call not in ROOTED else None
    if case.call == "Gatherv" and at_root:
        counts = [case.count] * RANKS
        taken = [take.whole, counts, [r * case.count for r in range(RANKS)], take.datatype]
    reduction = {"op": op} if case.call in REDUCTIONS else {}
    return {"sendbuf": in_place if stays else send.spec(), "recvbuf": taken} | reduction | root


def outcome(comm: MPI.Intracomm, case: Case, user: MPI.Op) -> tuple[str, bytes, bytes]:
    """The error, if there is one, and all memory afterwards."""
    in_blocks = case.call == "Reduce_scatter_block" and case.in_place
    send = Memory(case, case.send_form, RANKS if case.call in SENDS_BLOCKS else 1, 0)
    blocks = RANKS if case.call in TAKES_BLOCKS or case.call == "Gatherv" or in_blocks else 1
    take = Memory(case, case.take_form, blocks, 1)
    op = user if case.op == "USER" else getattr(MPI, case.op or "SUM")
    given = arguments(case, send, take, op)
    error = ""
    try:
        call = getattr(comm, case.call)
        call(**given) if case.keywords else call(*given.values())
    except Exception as found:
        error = type(found).__name__
    if in_blocks:  # only the first block is a result; some MPIs compute in the others
        take.whole[MARGIN + case.count : MARGIN + RANKS * case.count] = 0
    return error, send.whole.tobytes(), take.whole.tobytes()


def compare(ours: MPI.Intracomm, case: Case, user: MPI.Op) -> list[str]:
    """What the ranks that differ found; the same list on every rank."""
    wanted, found = outcome(WORLD, case, user), outcome(ours, case, user)
    parts = ("error", "send buffer", "receive buffer")
    differs = [part for part, a, b in zip(parts, wanted, found, strict=True) if a != b]
    said = f"rank {RANK}: {', '.join(differs)} ({wanted[0] or 'none'}, {found[0] or 'none'})"
    return [each for each in WORLD.allgather(said if differs else "") if each]


def draw_and_compare(ours: MPI.Intracomm, call: str, op: str, number: int, user: MPI.Op) -> None:
    @seed(zlib.crc32(f"{call} {op}".encode()))
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(call, op))
    def every_case_is_alike(case: Case) -> None:
        WORLD.bcast(case)
        assert compare(ours, case, user) == []

    every_case_is_alike()


def try_all(transport: str) -> None:
    ours = Communicator(WORLD, kind="regular", transport=transport)
    user = MPI.Op.Create(larger_bytes, commute=True)
    if RANK == 0:
        try:
            for call in (*MOVES, "Barrier"):
                draw_and_compare(ours, call, "", CASES_OF_MOVES, user)
            for call in REDUCTIONS:
                for op in OPERATIONS:
                    draw_and_compare(ours, call, op, CASES, user)
        finally:
            WORLD.bcast(None)
        print(f"{transport}: every call alike on {RANKS} ranks", flush=True)
    else:
        while (case := WORLD.bcast(None)) is not None:
            compare(ours, case, user)
    user.Free()
    ours.Free()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try_all(name)
