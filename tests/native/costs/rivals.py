"""The stores and reads of other algorithms in a call, by their documentation and sources.

Each function makes the calls of one algorithm, for ranks at given places, with rank 0 as the root.
"""

from collections.abc import Callable, Hashable
from functools import partial

from tests.native.costs.cost_model import INLINE, LINE, Call, Place

Groups = list[list[int]]
Algorithm = Callable[[list[Place], str, int], Call | None]  # None: MPI uses a different one


def flat(places: list[Place], operation: str, size: int) -> Call | None:
    """Every rank reads a flag of every other; arrays are read, and results written, directly."""
    call, ranks = Call(places), range(len(places))
    p = len(places)

    def meet(step: str) -> None:
        for r in ranks:
            call.store(r, step)
            for i in range(1, p):
                call.read(r, (r + i) % p, step)

    meet("post")
    if size <= INLINE:
        return call
    for r in ranks:
        for i in range(1, p):
            other = (r + i) % p
            if operation == "Allgather" or (operation == "Bcast" and other == 0):
                call.data(r, other, size)
            elif operation == "Allreduce":
                call.data(r, other, -(-size // p))
        for i in range(1, p if operation == "Allreduce" else 0):
            call.write(r, (r + i) % p, -(-size // p))
    meet("done")
    return call


# ---- Open MPI coll/xhc ----

CHUNK = 16 * 1024
LEAST_WORK = 4096


def _levels(places: list[Place], *features: str) -> list[Groups]:
    """Groups by each feature in turn, of the leaders of the level below; at the top, one group."""
    members, levels = list(range(len(places))), []
    for feature in (*features, "all"):
        groups: dict[Hashable, list[int]] = {}
        for r in members:
            at = places[r]
            key = {"l3": at, "numa": at[:2], "socket": at[:1], "all": ()}[feature]
            groups.setdefault(key, []).append(r)
        if max(map(len, groups.values())) > 1:
            levels.append(list(groups.values()))
        members = [g[0] for g in groups.values()]
    return levels


def _gather_flags(call: Call, groups: Groups, step: Hashable) -> None:
    for g in groups:
        for r in g[1:]:
            call.store(r, step)
        for r in g[1:]:
            call.read(g[0], r, step)


def _xhc_bcast(call: Call, levels: list[Groups], size: int) -> None:
    """Members copy from their leader, in chunks where they lead others; then acknowledge."""
    chunks = [min(CHUNK, size - at) for at in range(0, size, CHUNK)]
    leads = {g[0] for groups in levels for g in groups} - {0}
    for depth, groups in reversed(list(enumerate(levels))):
        for g in groups:
            if g[0] == 0:
                call.store(0, ("ready", depth, len(chunks) - 1))
            for r in g[1:]:
                for i, chunk in enumerate(chunks):
                    # the root's data is complete; a rank that leads others waits for each chunk
                    word = ("ready", depth, len(chunks) - 1 if g[0] == 0 else i)
                    call.read(r, g[0], word)
                    call.data(r, g[0], chunk)
                    for below in range(depth if r in leads else 0):
                        if any(h[0] == r for h in levels[below]):
                            call.store(r, ("ready", below, i))
    for depth, groups in enumerate(levels):
        _gather_flags(call, groups, ("ack", depth))


def _xhc_reduce(call: Call, levels: list[Groups], size: int) -> None:
    """Short: leaders reduce the inputs of members. Long: members reduce parts of all inputs."""
    for depth, groups in enumerate(levels):
        for g in groups:
            workers = 1 if size <= INLINE else max(1, min(len(g), size // LEAST_WORK))
            part = -(-size // workers)
            for r in g:
                call.store(r, ("input", depth))
            for r in g[:workers]:
                for other in g:
                    call.read(r, other, ("input", depth))
                for other in g:
                    call.data(r, other, part)
                call.write(r, g[0], part)
            _gather_flags(call, [g[:workers]], ("reduced", depth))


def xhc(places: list[Place], operation: str, size: int, *, has_l3: bool = True) -> Call | None:
    """Open MPI's coll/xhc with its defaults, arrays mapped by XPMEM before."""
    call = Call(places)
    if operation == "Barrier":
        levels = _levels(places, "numa", "socket")
        for depth, groups in enumerate(levels):
            _gather_flags(call, groups, ("arrived", depth))
        for depth, groups in reversed(list(enumerate(levels))):
            for g in groups:
                call.store(g[0], ("go", depth))
                for r in g[1:]:
                    call.read(r, g[0], ("go", depth))
    elif operation == "Bcast":
        _xhc_bcast(call, _levels(places, "numa", "socket"), size)
    elif operation == "Allreduce":
        levels = _levels(places, *(["l3"] if has_l3 else []), "numa", "socket")
        _xhc_reduce(call, levels, size)
        _xhc_bcast(call, levels, size)
    else:
        return None
    return call


# ---- MPICH release_gather ----

CELL = 8 * 1024
CELLS = 4
BCAST_CHILDREN = 64
REDUCE_CHILDREN = 4


def _children(r: int, k: int, p: int) -> range:
    return range(min(k * r + 1, p), min(k * r + k + 1, p))


def _release(call: Call, step: Hashable, size: int) -> None:
    """Flags go down a tree; all ranks copy from the buffer of rank 0."""
    p = len(call.places)
    for r in range(p):
        if r:
            call.read(r, (r - 1) // BCAST_CHILDREN, step)
        call.store(r, step)
        call.data(r, 0, size)


def _gather(call: Call, step: Hashable, size: int, k: int) -> None:
    """Flags go up a tree, each after its data has been reduced."""
    p = len(call.places)
    for r in reversed(range(p)):
        for child in _children(r, k, p):
            call.read(r, child, step)
            call.data(r, child, size)
        call.store(r, step)


def _signal_emptied(call: Call, piece: int) -> None:
    """A cell is refilled after all ranks have emptied it; parents read the flags of children."""
    p = len(call.places)
    for r in range(p):
        if piece >= CELLS - 1:
            for child in _children(r, BCAST_CHILDREN, p):
                call.read(r, child, ("emptied", piece - CELLS + 1))
        call.store(r, ("emptied", piece))


def release_gather(places: list[Place], operation: str, size: int) -> Call | None:
    """MPICH's release_gather with its defaults, trees in the order of the ranks."""
    call = Call(places)
    # data is in a separate buffer, not in the line of the flag
    pieces = [max(min(CELL, size - at), LINE) for at in range(0, size, CELL)]
    if operation == "Barrier":
        _gather(call, "arrived", 0, BCAST_CHILDREN)
        _release(call, "go", 0)
    elif operation == "Bcast":
        for i, piece in enumerate(pieces):
            _release(call, ("filled", i), piece)
            _signal_emptied(call, i)
    elif operation == "Allreduce":
        for i, piece in enumerate(pieces):
            _gather(call, ("input", i), piece, REDUCE_CHILDREN)
            _release(call, ("result", i), piece)
    else:
        return None
    return call


def algorithms(*, has_l3: bool) -> dict[str, Algorithm]:
    """All of them; `has_l3`: whether the last-level caches of the machine are level 3."""
    return {
        "flat": flat,
        "XHC": partial(xhc, has_l3=has_l3),
        "release_gather": release_gather,
    }
