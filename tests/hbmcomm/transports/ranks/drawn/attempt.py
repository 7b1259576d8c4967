"""Does a drawn call on a communicator and sees whether every byte is what it must be.

Memory around a message and in its gaps carries a pattern that nobody may touch.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from drawn.calls import (
    DERIVED_FORMS,
    HALVES,
    SCATTERS,
    TO_ROOT,
    UNEQUAL,
    Call,
    Layout,
    contents,
    dtype_of,
)
from drawn.entries import entry_type, operation
from drawn.pages import Pages
from mpi4py import MPI

GUARD = 0xA5
MARGIN = 3  # elements before a message, and as many behind


class Memory:
    """One buffer of one rank, in a layout; `comm` gives memory in the arena."""

    def __init__(self, call: Call, layout: Layout, rank: int, role: int, comm: Any) -> None:
        dtype = dtype_of(call.dtype)
        self.form, self.total = layout.form, call.elements(rank, role)
        self.parts = call.parts(rank, role)
        equal = call.name not in UNEQUAL and call.name != "Reduce_scatter"
        self.count = call.count if equal else call.entries(rank, role)
        self.entry, self.pages = call.entry, None
        self.is_read_only = layout.place == "read-only" and not role
        if call.name == "Bcast" and rank != call.root:
            self.is_read_only = False
        odd = layout.place == "odd bytes" and call.dtype not in HALVES
        if odd and "type" not in self.form:  # mpi4py reads no type from misaligned memory
            self.form = "[buffer, count, type]"
        self.stride = 2 if self.form == "[every other element]" else 1
        self.margin = MARGIN if "part" in layout.place or odd else 0
        elements = self.total * self.stride + 2 * self.margin
        nbytes = elements * dtype.itemsize + 2 * odd
        can_share = hasattr(comm, "empty")
        if layout.place in ("pages", "read-only"):
            self.pages = Pages(nbytes)
            self.raw = self.pages.array
        elif can_share and layout.place.startswith("arena"):
            self.raw = comm.empty(nbytes, "u1")
        elif can_share and layout.place == "numpy_memory":
            with comm.numpy_memory():
                self.raw = np.empty(nbytes, "u1")
        else:
            self.raw = np.empty(nbytes, "u1")
        self.bytes = self.raw[1:-1] if odd else self.raw
        self.elements = self.bytes.view(dtype)
        self.message = self.elements[self.margin : elements - self.margin]
        self.data = self.message[:: self.stride]
        self.datatype = None if call.dtype in HALVES else MPI.Datatype.fromcode(call.dtype)
        self.odd, self.own_types = odd, []

    def wipe(self) -> None:
        if self.pages:
            self.pages.open()
        self.raw[:] = GUARD

    def fill(self, values: np.ndarray) -> None:
        self.wipe()
        self.data[:] = values
        if self.pages and self.is_read_only:
            self.pages.make_read_only()

    def spoilt(self) -> bool:
        """A byte that is no part of the message was written; the message is lost."""
        if self.pages:
            self.pages.open()
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
        if self.parts is not None:
            return self._unequal(whole, own, self.parts)
        if self.form in DERIVED_FORMS:
            return self._derived(own, self.count)
        if self.entry is not None:
            return [own, self.count, entry_type(self.entry)]
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
        raise AssertionError(self.form)

    def _derived(self, own: Any, count: Any) -> list[Any]:
        """A message in a datatype of its own; `count` may be (lengths, begins) of its blocks."""
        datatype = self.datatype
        match self.form:
            case "[buffer, type of its own]":
                return [own, count, self._own(datatype.Dup())]
            case "[every other element]":
                return [own, count, self._own(datatype.Create_resized(0, 2 * datatype.extent))]
        if not count:
            return [own, 0, datatype]
        return [own, 1, self._own(datatype.Create_contiguous(count))]

    def _unequal(self, whole: Any, own: Any, parts: list[tuple[int, int]]) -> list[Any]:
        """Blocks of different lengths, in a form that is nearest to that of others."""
        begins, lengths = [begin for begin, _ in parts], np.array([length for _, length in parts])
        match self.form:
            case "[buffer, (count, place), type]" | "(buffer, count, place, type)":
                return [whole, (lengths, [begin + self.margin for begin in begins]), self.datatype]
            case "[buffer, type of its own]" | "[every other element]":
                return self._derived(own, (lengths, begins))
        return [own, lengths, begins, self.datatype]

    def _own(self, datatype: MPI.Datatype) -> MPI.Datatype:
        self.own_types.append(datatype.Commit())
        return datatype

    def free(self) -> None:
        for datatype in self.own_types:
            datatype.Free()


class Attempt:
    """A call on one rank of a communicator, with memory of its own.

    `arrays` is the communicator that gives memory in the arena; left out: the same.
    """

    def __init__(self, call: Call, comm: MPI.Intracomm, arrays: Any = None) -> None:
        self.call, self.comm, self.rank = call, comm, comm.rank
        self.give = Memory(call, call.gives[self.rank], self.rank, 0, arrays or comm)
        self.take = Memory(call, call.takes[self.rank], self.rank, 1, arrays or comm)
        self.make_slow: Callable[[], None] | None = None
        """Makes some of the memory slow, once, when it is filled."""

    def run(self) -> None:
        """Do it; the persistent ways do it twice from equal memory."""
        call = self.call
        if call.way in ("persistent", "planned"):
            self._run_plan(self.plan())
            return
        self.fill()
        if call.way == "nonblocking":
            self.start().Wait()
            return
        given = self._arguments()
        if call.way == "blocking":
            getattr(self.comm, call.name)(*given.values())
        else:
            getattr(self.comm, call.name)(**given)

    def start(self) -> MPI.Request:
        """The call is in flight from here on; its memory is filled already."""
        return self.starting()()

    def starting(self) -> Callable[[], MPI.Request]:
        """The function, in C, that starts the call."""
        start: Any = getattr(self.comm, f"I{self.call.name.lower()}")
        return functools.partial(start, **self._arguments())

    def plan(self) -> Any:
        """The persistent call on this memory: a `Plan`, or MPI's."""
        return getattr(self.comm, f"{self.call.name}_init")(**self._arguments())

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
        if self.make_slow:
            self.make_slow()
            self.make_slow = None

    def wrong(self, wanted: np.ndarray | None) -> str:
        """What is not as it must be, in words; the memory is lost. `wanted`: see expected()."""
        call, lines = self.call, []
        before = [contents(call, self.rank, role) for role in (0, 1)]
        after = [before[0].copy(), before[1].copy()]
        taking = 0 if call.name == "Bcast" else 1
        if wanted is not None:
            after[taking][: wanted.size] = wanted
        held = [self.give.data, self.take.data]
        if (defined := self._defined(wanted)) is not None:
            held[1], after[1] = held[1][:defined], after[1][:defined]
        for role, data, correct in zip(("given", "taken"), held, after, strict=True):
            if not same(data, correct):
                where = int(np.argmax(np.asarray(data != correct)))
                lines.append(f"{role}[{where}] is {data[where]} and not {correct[where]}")
        for role, memory in (("given", self.give), ("taken", self.take)):
            if memory.spoilt():
                lines.append(f"memory beside what is {role} was written")
        return ", ".join(lines)

    def _defined(self, wanted: np.ndarray | None) -> int | None:
        """How many of the taken elements MPI defines; None: all."""
        call = self.call
        if call.name in ("Reduce_scatter_block", "Reduce_scatter") and call.in_place:
            return 0 if wanted is None else wanted.size
        return 0 if call.name == "Exscan" and self.rank == 0 else None

    def wipe(self) -> None:
        """Fill all memory of the call; nobody may touch it from here on."""
        for memory in (self.give, self.take):
            memory.wipe()

    def is_wiped(self) -> bool:
        """Whether all memory is as wipe() left it."""
        return all(bool((memory.raw == GUARD).all()) for memory in (self.give, self.take))

    def free(self) -> None:
        self.give.free()
        self.take.free()

    def _arguments(self) -> dict[str, Any]:
        """mpi4py's arguments of the call on this rank, by name and in its order."""
        call = self.call
        passes_both = call.spare or self.rank == call.root
        root = {"root": call.root} if call.has_root else {}
        if call.name == "Barrier":
            return {}
        if call.name == "Bcast":
            return {"buf": self.give.spec()} | root
        given = self.give.spec() if passes_both or call.name not in SCATTERS else None
        taken = self.take.spec() if passes_both or call.name not in TO_ROOT else None
        if call.is_in_place(self.rank):
            in_place = MPI.IN_PLACE if call.seed % 2 else None
            given, taken = (given, in_place) if call.name in SCATTERS else (in_place, taken)
        if call.reduces and all(
            isinstance(spec, list) and spec[0] is None for spec in (given, taken)
        ):
            # Open MPI's persistent calls refuse two buffers at one address, NULL as well
            taken = [np.zeros(1, "B"), *taken[1:]]
        more: dict[str, Any] = {}
        if call.name == "Reduce_scatter":
            more["recvcounts"] = [call.length(0, other) for other in range(call.ranks)]
        if call.reduces:
            more["op"] = getattr(MPI, call.op) if call.entry is None else operation(call.op)
        return {"sendbuf": given, "recvbuf": taken} | more | root


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Bit for bit; by value where bytes are idle, and where zeros have the sign of a rounding."""
    if a.dtype.char in "gFDG":
        return bool(np.array_equal(a, b))
    return np.ascontiguousarray(a).tobytes() == b.tobytes()
