"""What an algorithm does in a collective, counted: messages, bytes, folds. Machines play no part.

Sources: Chan et al., "Collective communication: theory, practice, and experience", CCPE 19 (2007);
Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005); Besch and Pohl, "Flexible data parallel training of
neural networks using MIMD-computers", PDP 1995 (trees for broadcast and sum).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

SEGMENT = 128 * 1024
"""Bytes that a chain passes on at a time."""


class Counts(NamedTuple):
    """One call of a collective.

    Attributes:
        messages: one after the other on the longest path; of shared memory, flags waited for.
        sent: bytes of these messages; of shared memory, bytes read and written by the busiest rank.
        folded: bytes that a rank adds to its own on the longest path.
    """

    messages: float
    sent: float
    folded: float = 0.0


Counting = Callable[[int, float], Counts]
"""Counts from the number of ranks, at least 2, and the bytes of a rank's message. In an allgather
and a gather that is what a rank gives, in a reduce_scatter what it gets."""


def rounds(ranks: int) -> int:
    """Rounds of a tree: ceil(log2(ranks))."""
    return (ranks - 1).bit_length()


def pieces(nbytes: float) -> int:
    """How many parts a chain passes on."""
    return max(1, round(nbytes / SEGMENT))


def _doubling_steps(ranks: int) -> tuple[int, int]:
    """Exchanges among a power of two of the ranks, and steps more for the rest of them."""
    exchanges = ranks.bit_length() - 1
    return exchanges, 0 if ranks == 1 << exchanges else 2


def one_for_each(p: int, n: float) -> Counts:
    """One message for each other rank: to or from a root, or around a ring."""
    return Counts(p - 1, (p - 1) * n)


def bcast_binomial(p: int, n: float) -> Counts:
    """In each round all ranks that have the data send them to one more."""
    return Counts(rounds(p), rounds(p) * n)


def bcast_chain(p: int, n: float) -> Counts:
    """Each rank passes pieces on to the next."""
    steps = p - 2 + pieces(n)
    return Counts(steps, steps * n / pieces(n))


def bcast_ring(p: int, n: float) -> Counts:
    """Scatter by a tree, then allgather around a ring (van de Geijn)."""
    share = n * (p - 1) / p
    return Counts(rounds(p) + p - 1, 2 * share)


def _reduction(bcast: Counting) -> Counting:
    """A broadcast backwards: what comes in is folded."""

    def reduce(p: int, n: float) -> Counts:
        counts = bcast(p, n)
        return counts._replace(folded=counts.sent)

    return reduce


def reduce_rabenseifner(p: int, n: float) -> Counts:
    """Recursive halving, then a gather by a tree."""
    share = n * (p - 1) / p
    return Counts(2 * rounds(p), 2 * share, share)


def allreduce_doubling(p: int, n: float) -> Counts:
    """Pairs exchange all that they have."""
    exchanges, more = _doubling_steps(p)
    steps = exchanges + more
    folds = exchanges + (more > 0)
    return Counts(steps, steps * n, folds * n)


def allreduce_rabenseifner(p: int, n: float) -> Counts:
    """Recursive halving, then recursive doubling of the results."""
    exchanges, more = _doubling_steps(p)
    share = n * (1 - 2.0**-exchanges)
    whole = more * n
    folded = share + (n if more else 0)
    return Counts(2 * exchanges + more, 2 * share + whole, folded)


def allreduce_ring(p: int, n: float) -> Counts:
    """Reduce-scatter around a ring, then allgather around it."""
    share = n * (p - 1) / p
    return Counts(2 * (p - 1), 2 * share, share)


def gather_binomial(p: int, n: float) -> Counts:
    """In each round a rank passes on all that it has received."""
    return Counts(rounds(p), (p - 1) * n)


def allgather_doubling(p: int, n: float) -> Counts:
    """Pairs exchange all that they have received so far."""
    return Counts(rounds(p), (p - 1) * n)


def reduce_scatter_ring(p: int, n: float) -> Counts:
    """Each block is reduced on its way around."""
    return Counts(p - 1, (p - 1) * n, (p - 1) * n)


def reduce_scatter_halving(p: int, n: float) -> Counts:
    """Pairs exchange half of what they still reduce."""
    exchanges, more = _doubling_steps(p)
    share = p * n * (1 - 2.0**-exchanges)
    return Counts(exchanges + more, share + more * p * n / 2, share)


def _after(first: Counting, second: Counting) -> Counting:
    """One after the other."""

    def both(p: int, n: float) -> Counts:
        return Counts(*map(sum, zip(first(p, n), second(p, n), strict=True)))

    return both


def _of_all(count: Counting) -> Counting:
    """With the blocks of all ranks as the message."""
    return lambda p, n: count(p, p * n)


_FLAT, _TREE, _CHAIN = (_reduction(bcast) for bcast in (one_for_each, bcast_binomial, bcast_chain))

ALGORITHMS: dict[str, dict[str, Counting]] = {
    "bcast": {
        "flat": one_for_each,
        "binomial": bcast_binomial,
        "chain": bcast_chain,
        "ring": bcast_ring,
    },
    "reduce": {
        "flat": _FLAT,
        "binomial": _TREE,
        "chain": _CHAIN,
        "rabenseifner": reduce_rabenseifner,
    },
    "allreduce": {
        "flat": _after(_FLAT, one_for_each),
        "binomial": _after(_TREE, bcast_binomial),
        "chain": _after(_CHAIN, bcast_chain),
        "ring": allreduce_ring,
        "recursive-doubling": allreduce_doubling,
        "rabenseifner": allreduce_rabenseifner,
    },
    "gather": {"flat": one_for_each, "binomial": gather_binomial},
    "allgather": {
        "flat": _after(one_for_each, _of_all(one_for_each)),
        "binomial": _after(gather_binomial, _of_all(bcast_binomial)),
        "ring": one_for_each,
        "recursive-doubling": allgather_doubling,
    },
    "reduce_scatter": {
        "binomial": _after(_of_all(_TREE), gather_binomial),
        "ring": reduce_scatter_ring,
        "rabenseifner": reduce_scatter_halving,
    },
}
"""By operation and name: algorithms of ranks that send messages to each other."""
