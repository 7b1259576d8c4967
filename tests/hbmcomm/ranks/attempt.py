"""Does a drawn call on a communicator and sees whether every byte is what it must be.

Memory around a message and in its gaps carries a pattern that nobody may touch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawn import HALVES, Call, Layout, contents, dtype_of
from mpi4py import MPI

GUARD = 0xA5
MARGIN = 3  # elements before a message, and as many behind


class Memory:
    """One buffer of one rank, in a layout."""

    def __init__(self, call: Call, layout: Layout, blocks: int, comm: Any) -> None:
        dtype = dtype_of(call.dtype)
        self.form, self.count, self.total = layout.form, call.count, blocks * call.count
        odd = layout.place == "odd bytes" and call.dtype not in HALVES
        if odd and "type" not in self.form:  # mpi4py reads no type from misaligned memory
            self.form = "[buffer, count, type]"
        self.stride = 2 if self.form == "[every other element]" else 1
        self.margin = 0 if layout.place in ("arena", "private") else MARGIN
        elements = self.total * self.stride + 2 * self.margin
        nbytes = elements * dtype.itemsize + 2 * odd
        shared = layout.place.startswith("arena") and hasattr(comm, "empty")
        if odd or not shared:
            self.raw = np.empty(nbytes, "u1")
        else:
            self.raw = comm.empty(nbytes, "u1")
        self.bytes = self.raw[1:-1] if odd else self.raw
        self.elements = self.bytes.view(dtype)
        self.message = self.elements[self.margin : elements - self.margin]
        self.data = self.message[:: self.stride]
        self.datatype = None if call.dtype in HALVES else MPI.Datatype.fromcode(call.dtype)
        self.odd, self.own_types = odd, []

    def fill(self, values: np.ndarray) -> None:
        self.raw[:] = GUARD
        self.data[:] = values

    def spoilt(self) -> bool:
        """A byte that is no part of the message was written; the message is lost."""
        itemsize = self.elements.itemsize
        start = self.margin * itemsize
        message = self.bytes[start : start + self.message.nbytes]
        message.reshape(-1, self.stride * itemsize)[:, :itemsize] = GUARD
        return bool((self.raw != GUARD).any())

    def spec(self) -> Any:
        """The message in its form; a count is that of one block."""
        code, datatype = self.elements.dtype.char, self.datatype
        whole: Any = self.bytes if self.odd else self.elements
        start = self.margin * self.elements.itemsize
        own: Any = self.bytes[start : start + self.message.nbytes] if self.odd else self.message
        match self.form:
            case "array":
                return own
            case "column-major":
                return own.reshape(-1, 2 if self.total % 2 == 0 else 1, order="F")
            case "memoryview":
                return memoryview(own)
            case "[buffer, type]":
                return [own, datatype]
            case "(buffer, code)":
                return (own, code)
            case "[buffer, count, type]":
                return [own if self.count else None, np.int32(self.count), datatype]
            case "[buffer, (count, place), type]":
                return [whole, (self.count, self.margin), datatype]
            case "(buffer, count, place, type)":
                return (whole, self.count, self.margin, datatype)
            case "[buffer, type of its own]":
                return [own, self.count, self._own(datatype.Dup())]
            case "[all as one]":
                if not self.count:
                    return [own, 0, datatype]
                return [own, 1, self._own(datatype.Create_contiguous(self.count))]
            case "[every other element]":
                return [own, self.count, self._own(datatype.Create_resized(0, 2 * datatype.extent))]
        raise AssertionError(self.form)

    def _own(self, datatype: MPI.Datatype) -> MPI.Datatype:
        self.own_types.append(datatype.Commit())
        return datatype

    def free(self) -> None:
        for each in self.own_types:
            each.Free()


class Attempt:
    """A call on one rank of a communicator, with memory of its own."""

    def __init__(self, call: Call, comm: MPI.Intracomm) -> None:
        self.call, self.comm, self.rank = call, comm, comm.rank
        self.give = Memory(call, call.gives[self.rank], call.giving_blocks(), comm)
        self.take = Memory(call, call.takes[self.rank], call.taking_blocks(), comm)

    def run(self) -> None:
        """Do it; the persistent ways do it twice from equal memory."""
        call, given = self.call, self._arguments()
        self.fill()
        if call.way == "blocking":
            getattr(self.comm, call.name)(*given.values())
        elif call.way == "keywords":
            getattr(self.comm, call.name)(**given)
        else:
            self._run_plan(getattr(self.comm, f"{call.name}_init")(**given))

    def _run_plan(self, plan: Any) -> None:
        for start in range(2):
            self.fill()
            if self.call.way == "planned":
                plan()
            elif start:
                plan.Start()
                while not plan.Test():
                    pass
            else:
                plan.Start()
                plan.Wait()
        plan.Free()

    def fill(self) -> None:
        self.give.fill(contents(self.call, self.rank, 0))
        self.take.fill(contents(self.call, self.rank, 1))

    def wrong(self, wanted: np.ndarray | None) -> str:
        """What is not as it must be, in words; the memory is lost. `wanted`: see expected()."""
        call, said = self.call, []
        before = [contents(call, self.rank, role) for role in (0, 1)]
        after = [before[0].copy(), before[1].copy()]
        taking = 0 if call.name == "Bcast" else 1
        if wanted is not None:
            after[taking][: wanted.size] = wanted
        held = [self.give.data, self.take.data]
        if call.name == "Reduce_scatter_block" and call.in_place:  # of the rest MPI says nothing
            held[1], after[1] = held[1][: call.count], after[1][: call.count]
        for role, found, correct in zip(("given", "taken"), held, after, strict=True):
            if not same(found, correct):
                where = int(np.argmax(np.asarray(found != correct)))
                said.append(f"{role}[{where}] is {found[where]} and not {correct[where]}")
        for role, memory in (("given", self.give), ("taken", self.take)):
            if memory.spoilt():
                said.append(f"memory beside what is {role} was written")
        return ", ".join(said)

    def free(self) -> None:
        self.give.free()
        self.take.free()

    def _arguments(self) -> dict[str, Any]:
        """mpi4py's arguments of the call on this rank, by name and in its order."""
        call, at_root = self.call, self.rank == self.call.root
        root = {"root": call.root} if call.has_root else {}
        if call.name == "Barrier":
            return {}
        if call.name == "Bcast":
            return {"buf": self.give.spec()} | root
        giving = at_root or call.spare or call.name != "Scatter"
        given = self.give.spec() if giving else None
        taking = at_root or call.spare or call.name not in ("Gather", "Reduce")
        taken = self.take.spec() if taking else None
        if call.is_in_place(self.rank):
            if call.name == "Scatter":
                taken = MPI.IN_PLACE
            else:
                given = MPI.IN_PLACE
        reduction = {"op": getattr(MPI, call.op)} if call.reduces else {}
        return {"sendbuf": given, "recvbuf": taken} | reduction | root


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Bit for bit; by value where bytes are idle, and where zeros have the sign of a rounding."""
    if a.dtype.char in "gFDG":
        return bool(np.array_equal(a, b))
    return np.ascontiguousarray(a).tobytes() == b.tobytes()


def do(call: Call, comm: MPI.Intracomm, wanted: np.ndarray | None) -> str:
    """Do a call and say what was wrong, "" for nothing."""
    attempt = Attempt(call, comm)
    try:
        attempt.run()
        return attempt.wrong(wanted)
    finally:
        attempt.free()
