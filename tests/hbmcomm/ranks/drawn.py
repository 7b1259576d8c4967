"""Random collective calls: the same on every rank that draws with the same seed.

Knows which dtypes an operation takes, at which sizes transports change their way, and which rank
gives and takes what. Neither allocates nor calls anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

ROOTED = ("Bcast", "Gather", "Scatter", "Reduce")
REDUCTIONS = ("Reduce", "Allreduce", "Reduce_scatter_block")
CALLS = (*ROOTED, "Allgather", "Alltoall", "Allreduce", "Reduce_scatter_block", "Barrier")
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

WAYS = ("blocking", "blocking", "keywords", "persistent", "planned")
"""The last two are direct's."""

PLACES = ("arena", "arena part", "private", "private part", "odd bytes")
PLAIN_FORMS = (
    *("array", "array", "column-major", "memoryview", "[buffer, type]", "(buffer, code)"),
    *("[buffer, count, type]", "[buffer, (count, place), type]", "(buffer, count, place, type)"),
)
DERIVED_FORMS = ("[buffer, type of its own]", "[all as one]", "[every other element]")


@dataclass(frozen=True)
class Layout:
    """Where the memory of a message lies, and how it is written in the call."""

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
    in_place: bool
    spare: bool
    """Ranks that are no root pass a buffer nevertheless, where nobody may look."""
    way: str
    """blocking, keywords, persistent, or planned (a persistent call that is called)."""
    gives: tuple[Layout, ...]
    takes: tuple[Layout, ...]
    seed: int

    @property
    def has_root(self) -> bool:
        return self.name in ROOTED

    @property
    def reduces(self) -> bool:
        return self.name in REDUCTIONS

    def is_in_place(self, rank: int) -> bool:
        can = self.name not in ("Bcast", "Barrier")
        return can and self.in_place and (rank == self.root or not self.has_root)

    def giving_blocks(self) -> int:
        return self.ranks if self.name in GIVES_BLOCKS else 1

    def taking_blocks(self) -> int:
        in_blocks = self.name == "Reduce_scatter_block" and self.in_place
        return self.ranks if self.name in TAKES_BLOCKS or in_blocks else 1


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
    rng: Generator, ranks: int, transport: str, large: float, derived: tuple[str, ...] = ()
) -> Call:
    """A call that a transport takes.

    Args:
        large: the share of messages that have a MiB or more.
        derived: forms with derived datatypes that may be drawn too, of DERIVED_FORMS.
    """
    name = str(rng.choice(CALLS))
    op = str(rng.choice(list(OPERATIONS))) if name in REDUCTIONS else "SUM"
    dtypes = OPERATIONS[op] if name in REDUCTIONS else DTYPES
    dtype = str(rng.choice([each for each in dtypes if each not in _unknown(transport)]))
    plain = name in REDUCTIONS or dtype in "gG"  # MPICH aborts over long doubles in own types
    forms = PLAIN_FORMS if plain else PLAIN_FORMS + derived
    if dtype in HALVES:  # MPI has no type to name them by
        forms = ("array", "column-major")
    return Call(
        name=name,
        ranks=ranks,
        dtype=dtype,
        count=_count(rng, dtype_of(dtype).itemsize, large),
        root=int(rng.integers(ranks)),
        op=op,
        in_place=bool(rng.random() < 0.3),
        spare=bool(rng.random() < 0.2),
        way=str(rng.choice(WAYS if transport == "direct" else WAYS[:3])),
        gives=_layouts(rng, forms, ranks),
        takes=_layouts(rng, forms, ranks),
        seed=int(rng.integers(2**31)),
    )


def _unknown(transport: str) -> tuple[str, ...]:
    """What only `direct` reduces, and what is not installed."""
    if transport != "direct":
        return HALVES
    return () if has_bfloat16() else ("bfloat16",)


def _count(rng: Generator, itemsize: int, large: float) -> int:
    """Elements of one block: none, few, around a power of two, around a threshold, large."""
    drawn = rng.random()
    near = int(rng.integers(-1, 2))
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


def contents(call: Call, rank: int, role: int) -> np.ndarray:
    """What lies in the memory that a rank gives (role 0) or takes into (role 1) before the call.

    Whole numbers so small that sums and products are exact in any order.
    """
    blocks = call.taking_blocks() if role else call.giving_blocks()
    rng = np.random.default_rng([call.seed, rank, role])
    drawn = rng.integers(0, 3, blocks * call.count, "u1")
    values = drawn.astype(np.float32).astype(dtype_of(call.dtype))
    if call.dtype in "FDG":
        values += values.dtype.type(1j) * rng.integers(0, 2, values.size, "u1")
    return values
