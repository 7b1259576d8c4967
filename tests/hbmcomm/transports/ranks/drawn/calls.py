"""Random collective calls: the same on every rank that draws with the same seed.

Knows which dtypes an operation takes, at which sizes transports change their way, and which rank
gives and takes what. Neither allocates nor calls anything.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

ROOTED = ("Bcast", "Gather", "Scatter", "Gatherv", "Scatterv", "Reduce")
SCANS = ("Scan", "Exscan")
REDUCTIONS = ("Reduce", "Allreduce", "Reduce_scatter_block", "Reduce_scatter", *SCANS)
UNEQUAL = ("Gatherv", "Scatterv", "Allgatherv", "Alltoallv")
"""Blocks of different lengths, at places that each rank chooses."""
CALLS = (
    *("Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall", *UNEQUAL),
    *REDUCTIONS,
)
SCATTERS, TO_ROOT = ("Scatter", "Scatterv"), ("Gather", "Gatherv", "Reduce")
GIVES_BLOCKS = ("Scatter", "Alltoall", "Reduce_scatter_block")
TAKES_BLOCKS = ("Gather", "Allgather", "Alltoall")

INTEGERS = "bBhHiIlLqQ"
HALVES = ("e", "bfloat16")
OPERATIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("SUM", "PROD"), (*INTEGERS, *"fdgFDG", *HALVES)),
    **dict.fromkeys(("MAX", "MIN"), (*INTEGERS, *"fdg", *HALVES)),
    **dict.fromkeys(("LAND", "LOR", "LXOR"), (*INTEGERS, "?")),
    **dict.fromkeys(("BAND", "BOR", "BXOR"), tuple(INTEGERS)),
}
"""The dtypes that each operation takes: those of MPI, and the halves."""

DTYPES = (*INTEGERS, *"fdgFDG?", *HALVES)

THRESHOLDS = (4096, 8192, 16384, 65536, 131072, 262144, 524288)
LARGE = (1 << 20, 1 << 20, 3 << 20)

OWN_OPERATIONS = 0.5  # of the reductions use one of the program, where it has any
MANY = 32768  # bytes of an entry of which a message has one or two

WAYS = ("blocking", "blocking", "keywords", "nonblocking", "persistent", "planned")
"""The last two are those of OWN."""

OWN = ("direct", "hierarchical")
"""Transports with nonblocking and persistent calls of their own."""

PLACES = ("arena", "arena part", "private", "private part", "numpy_memory", "odd bytes")
PLAIN_FORMS = (
    *("array", "array", "column-major", "memoryview", "[buffer, type]", "(buffer, code)"),
    *("[buffer, count, type]", "[buffer, (count, place), type]", "(buffer, count, place, type)"),
)
DERIVED_FORMS = ("[buffer, type of its own]", "[all as one]", "[every other element]")


@dataclass(frozen=True)
class Layout:
    """Where the memory of a message is, and how it is written in the call."""

    place: str
    form: str


@dataclass(frozen=True)
class Call:
    """One collective call on `ranks` ranks; the layouts are per rank."""

    name: str
    ranks: int
    dtype: str
    count: int
    root: int
    op: str
    """MPI's name; "commutative" or "ordered" for operations of the program (`drawn.entries`)."""
    in_place: bool
    spare: bool
    """Ranks that are no root pass a buffer nevertheless, where nobody may look."""
    way: str
    """One of WAYS; planned is a persistent call that is called."""
    gives: tuple[Layout, ...]
    takes: tuple[Layout, ...]
    seed: int
    """Seed of the contents."""
    lengths: int
    """The seed of the blocks' lengths and places, where they are unequal."""
    entry: int | None = None
    """Bytes of an entry that an operation of the program combines; counts are of entries then."""

    @property
    def has_root(self) -> bool:
        return self.name in ROOTED

    @property
    def reduces(self) -> bool:
        return self.name in REDUCTIONS

    @property
    def unit(self) -> int:
        """Elements of an entry."""
        return 1 if self.entry is None else self.entry

    def is_in_place(self, rank: int) -> bool:
        can = self.name not in ("Bcast", "Barrier")
        return can and self.in_place and (rank == self.root or not self.has_root)

    def parts(self, rank: int, role: int) -> list[tuple[int, int]] | None:
        """Where a rank's blocks from or for each rank begin and how long they are, in elements.

        None where it gives (role 0) or takes (role 1) blocks of one length.
        """
        taking = {"Gatherv": (1,), "Allgatherv": (1,), "Scatterv": (0,), "Alltoallv": (0, 1)}
        if role not in taking.get(self.name, ()):
            return None
        lengths = [self.length(rank, other) for other in range(self.ranks)]
        rng = np.random.default_rng([self.lengths, rank, role])
        begins, at = [0] * self.ranks, 0
        for other in rng.permutation(self.ranks):
            at += int(rng.integers(0, 3))
            begins[other] = at
            at += lengths[other]
        return list(zip(begins, lengths, strict=True))

    def length(self, rank: int, other: int) -> int:
        """Elements of the block that two ranks exchange, or that only depends on `other`."""
        key = [other] if self.name != "Alltoallv" else [min(rank, other), max(rank, other)]
        rng = np.random.default_rng([self.lengths, *key])
        return int(rng.integers(0, self.count + 1)) if rng.random() < 0.8 else 0

    def elements(self, rank: int, role: int) -> int:
        """Elements of the message that a rank gives or takes, with the gaps between its blocks."""
        return self.unit * self.entries(rank, role)

    def entries(self, rank: int, role: int) -> int:
        """Entries of the message that a rank gives or takes, with the gaps between its blocks."""
        if (parts := self.parts(rank, role)) is not None:
            return max(begin + length for begin, length in parts)
        if self.name in UNEQUAL:
            return self.length(rank, rank)
        if self.name == "Reduce_scatter":
            whole = sum(self.length(0, other) for other in range(self.ranks))
            return whole if role == 0 or self.in_place else self.length(rank, rank)
        in_blocks = self.name == "Reduce_scatter_block" and self.in_place
        blocks = self.name in (TAKES_BLOCKS if role else GIVES_BLOCKS) or (role and in_blocks)
        return self.count * (self.ranks if blocks else 1)


def dtype_of(name: str) -> np.dtype:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def has_bfloat16() -> bool:
    try:
        dtype_of("bfloat16")
    except ImportError:
        return False
    return True


def draw(
    rng: Generator,
    ranks: int,
    transport: str,
    large: float,
    derived: tuple[str, ...] = (),
    way: str | None = None,
    entries: tuple[int, ...] = (),
) -> Call:
    """A call that a transport takes.

    Args:
        large: the share of messages that have a MiB or more.
        derived: forms with derived datatypes that may be drawn too, of DERIVED_FORMS.
        way: how it is called; None: drawn.
        entries: bytes of the entries that operations of the program may combine.
    """
    name = str(rng.choice(REDUCTIONS if entries and rng.random() < 0.5 else CALLS))
    op = str(rng.choice(list(OPERATIONS))) if name in REDUCTIONS else "SUM"
    dtypes = OPERATIONS[op] if name in REDUCTIONS else DTYPES
    without = (*_unknown(transport), *(HALVES if name in UNEQUAL else ()))
    dtype = str(rng.choice([code for code in dtypes if code not in without]))
    # MPICH aborts over long doubles in own types, and over Allgatherv into unlike types
    plain = name in (*REDUCTIONS, "Allgatherv") or dtype in "gG"
    forms = PLAIN_FORMS if plain else PLAIN_FORMS + derived
    if dtype in HALVES:  # MPI has no type to name them by
        forms = ("array", "column-major")
    entry = None
    if entries and name in REDUCTIONS and rng.random() < OWN_OPERATIONS:
        entry, dtype = int(rng.choice(entries)), "B"
        op = "commutative" if rng.random() < 0.7 else "ordered"
        forms = ("[buffer, entries]",)
    count = _count(rng, dtype_of(dtype).itemsize if entry is None else entry, large)
    return Call(
        name=name,
        ranks=ranks,
        dtype=dtype,
        count=count,
        root=int(rng.integers(ranks)),
        op=op,
        in_place=bool(rng.random() < 0.3),
        spare=bool(rng.random() < 0.2),
        way=way or str(rng.choice(WAYS if transport in OWN else WAYS[:4])),
        gives=_layouts(rng, forms, ranks),
        takes=_layouts(rng, forms, ranks),
        seed=int(rng.integers(2**31)),
        lengths=int(rng.integers(2**31)),
        entry=entry,
    )


def mpi_can(call: Call) -> bool:
    """Whether MPI knows the types of a call, and all MPIs that were tried do it right."""
    if call.entry == 0 and call.way not in ("blocking", "keywords"):
        return False  # Open MPI 5.0 refuses Reduce_scatter_block_init
    match call.name:
        case "Gather" | "Allgather" | "Scatter":  # MPICH 5.0.2 aborts over some long doubles
            # Intel MPI 2021.18 reads memory of persistent ones as they are made
            return call.dtype not in (*HALVES, *"gG") and call.way not in ("persistent", "planned")
        case "Alltoall":  # and over these in place
            return call.dtype not in (*HALVES, *"gG")
        case "Allgatherv":  # Open MPI 5.0.11 gives a wrong one of them where a message is cut
            return call.dtype not in (*HALVES, "G")
        case "Reduce_scatter" | "Alltoallv":
            # MPICH copies by memcpy what overlaps; Open MPI 5.0 mixes up blocks of Ialltoallv
            return call.dtype not in HALVES and not call.in_place
    return call.dtype not in HALVES


def _unknown(transport: str) -> tuple[str, ...]:
    """What only the core reduces, and what is not installed."""
    if transport not in OWN:
        return HALVES
    return () if has_bfloat16() else ("bfloat16",)


def _count(rng: Generator, itemsize: int, large: float) -> int:
    """Elements of one block: none, few, around a power of two, around a threshold, large."""
    drawn = rng.random()
    near = int(rng.integers(-1, 2))
    if not itemsize:
        return int(rng.integers(0, 100))
    if itemsize >= MANY:
        return int(rng.integers(0, 2 + MANY // itemsize)) if drawn < 0.2 else 1
    if drawn < 0.08:
        return 0
    if drawn < 0.4:
        return int(rng.integers(1, 70))
    if drawn < 0.7:
        return (1 << int(rng.integers(6, 13))) + near
    if drawn < 1 - large:
        return max(int(rng.choice(THRESHOLDS)) // itemsize + near, 0)
    return int(rng.choice(LARGE)) // itemsize + near


def _layouts(rng: Generator, forms: tuple[str, ...], ranks: int) -> tuple[Layout, ...]:
    """All alike in half the cases: where ranks agree, transports take their fastest way."""
    number = 1 if rng.random() < 0.5 else ranks
    drawn = [Layout(str(rng.choice(PLACES)), str(rng.choice(forms))) for _ in range(number)]
    return tuple(drawn * ranks)[:ranks]


@functools.lru_cache(maxsize=32)  # a call's are asked for when it is made and when it is checked
def contents(call: Call, rank: int, role: int) -> np.ndarray:
    """The content of the memory that a rank gives (role 0) or takes into (role 1) before the call.

    Whole numbers so small that sums and products are exact in any order. Read-only.
    """
    rng = np.random.default_rng([call.seed, rank, role])
    elements = call.elements(rank, role)
    values = rng.integers(0, 3 if call.entry is None else 256, elements, "u1")
    if call.entry is None:
        values = values.astype(np.float32).astype(dtype_of(call.dtype))
    if call.dtype in "FDG":
        values += values.dtype.type(1j) * rng.integers(0, 2, values.size, "u1")
    values.flags.writeable = False
    return values


def on_pages(call: Call, rank: int) -> Call:
    """The call with the memory of a rank in pages of its own."""
    gives, takes = list(call.gives), list(call.takes)
    gives[rank] = Layout("pages", gives[rank].form)
    takes[rank] = Layout("pages", takes[rank].form)
    return replace(call, gives=tuple(gives), takes=tuple(takes))
