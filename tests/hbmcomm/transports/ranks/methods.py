"""Rank program: a method in C is called by position, by name and through what holds it.

No call keeps or loses a reference, whether the core does it, Python does, or nobody.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.transports.native import OPERATIONS
from hbmcomm.transports.requests import Request
from tests.hbmcomm.ranks.promising import keep, lines_of_python, promise

TIMES = 200

direct = Communicator(MPI.COMM_WORLD, "regular", "direct")
own = Communicator(MPI.COMM_SELF, "regular", "direct")


class Doubled(type(own)):  # type: ignore[misc]
    def Allreduce(self, *arguments: Any, **named: Any) -> None:
        super().Allreduce(*arguments, **named)
        arguments[1][...] *= 2


@promise
def every_way_to_call_a_method_in_c_is_one() -> None:
    comm: Any = direct
    size, one, summed = comm.size, np.full(3, comm.rank + 1.0), np.zeros(3)
    total, most = size * (size + 1) / 2, float(size)
    kind, names = type(comm), {"".join(("send", "buf")): one, "".join(("recv", "buf")): summed}
    bound = comm.Allreduce
    ways: list[tuple[Callable[[], object], float]] = [
        (lambda: comm.Allreduce(one, summed), total),
        (lambda: comm.Allreduce(one, summed, MPI.MAX), most),
        (lambda: comm.Allreduce(one, op=MPI.MAX, recvbuf=summed), most),
        (lambda: comm.Allreduce(**names), total),
        (lambda: comm.Allreduce(**names, op=MPI.MAX), most),
        (lambda: kind.Allreduce(comm, one, summed), total),
        (lambda: kind.Allreduce(self=comm, sendbuf=one, recvbuf=summed), total),
        (lambda: kind.Allreduce.__call__(comm, one, summed, op=MPI.MAX), most),
        (lambda: kind.Allreduce.__get__(comm, kind)(one, summed), total),
        (lambda: bound(one, recvbuf=summed), total),
        (lambda: functools.partial(bound, one)(summed, MPI.MAX), most),
        (lambda: Doubled.Allreduce(comm, one, summed), total),
        (lambda: comm.Allreduce([one, MPI.DOUBLE], [summed, MPI.DOUBLE]), total),
        (lambda: comm.Iallreduce(one, summed, op=MPI.MAX).Wait(), most),
        (lambda: comm.Iallreduce(recvbuf=[summed, MPI.DOUBLE], sendbuf=one).Wait(), total),
    ]
    for number, (way, expected) in enumerate(ways):
        summed[...] = 0
        if number == 11:
            expected *= 2
            comm.__class__ = Doubled
        way()
        comm.__class__ = kind
        assert (summed == expected).all(), (number, summed, expected)


@promise
def wrong_arguments_are_errors() -> None:
    comm: Any = own
    one = np.zeros(1)
    wrong: dict[str, Callable[[], object]] = {
        "none": lambda: comm.Bcast(),
        "too many": lambda: comm.Bcast(one, 0, 0),
        "far too many": lambda: comm.Bcast(*range(40)),
        "far too many, through __call__": lambda: type(comm).Bcast.__call__(*range(40)),
        "unknown": lambda: comm.Bcast(one, rot=0),
        "twice": lambda: comm.Bcast(one, buf=one),
        "no root": lambda: comm.Bcast(one, "0"),
        "a root too large": lambda: comm.Bcast(one, 2**40),
        "an odd address": lambda: type(comm).Bcast(Odd(), one),
    }
    for name, call in wrong.items():
        for _ in range(TIMES):
            try:
                call()
            except (TypeError, OverflowError, MPI.Exception):
                continue
            raise AssertionError(f"no error: {name}")


class Odd:
    _handle = "an address"


@promise
def usual_spellings_of_a_buffer_run_no_python_and_are_right() -> None:
    comm: Any = direct
    ranks, rank = comm.size, comm.rank
    for array_type, datatype in (("f8", MPI.DOUBLE), ("i4", MPI.INT), ("u1", MPI.BYTE)):
        one, summed = np.full(3, rank + 1, array_type), np.zeros(3, array_type)
        every, blocks = np.zeros((ranks, 3), array_type), np.zeros((ranks, 3), array_type)
        blocks[rank] = one
        at_root = None if rank else [every, datatype]
        calls: list[Callable[[], object]] = [
            lambda: comm.Bcast([summed, datatype]),  # noqa: B023
            lambda: comm.Allgather([one, datatype], (every, datatype)),  # noqa: B023
            lambda: comm.Allgather(MPI.IN_PLACE, blocks),  # noqa: B023
            lambda: comm.Allgather(MPI.IN_PLACE, [blocks, datatype]),  # noqa: B023
            lambda: comm.Gather(one, at_root),  # noqa: B023
            lambda: comm.Gather(one if rank else MPI.IN_PLACE, None if rank else every),  # noqa: B023
            lambda: comm.Scatter(None if rank else every, summed if rank else MPI.IN_PLACE),  # noqa: B023
        ]
        if datatype != MPI.BYTE:
            calls.append(lambda: comm.Allreduce([one, datatype], [summed, datatype]))  # noqa: B023
        for number, call in enumerate(calls):
            assert lines_of_python(call) == 0, (datatype.name, number)
        expected = np.repeat(np.arange(1, ranks + 1, dtype=array_type), 3).reshape(ranks, 3)
        assert (blocks == expected).all() and (rank or (every == expected).all())
        assert datatype == MPI.BYTE or (summed == ranks * (ranks + 1) / 2).all()


@promise
def a_list_that_changes_during_a_call_does_no_harm() -> None:
    comm: Any = own
    for _ in range(TIMES):
        spec: list[Any] = [np.full(1000, 1.0), MPI.DOUBLE]
        result = np.zeros(1000)
        request = comm.Iallreduce(spec, result)
        spec.clear()
        request.Wait()
        assert (result == 1).all()


@promise
def no_call_keeps_or_loses_a_reference() -> None:
    comm: Any = own
    one, other, op, root = np.zeros(4), np.zeros(4), MPI.MAX, 10**9
    calls: list[Callable[[], object]] = [
        lambda: comm.Allreduce(one, other, op),
        lambda: comm.Allreduce(one, other, op=op),
        lambda: comm.Allreduce([one, MPI.DOUBLE], other, op),
        lambda: comm.Allreduce([one, MPI.FLOAT], [other, MPI.FLOAT], op),
        lambda: comm.Allgather(MPI.IN_PLACE, (other, MPI.DOUBLE)),
        lambda: comm.Iallreduce(one, other, op).Wait(),
        lambda: comm.Iallreduce([one, MPI.DOUBLE], other, op=op).Wait(),
        lambda: comm.Bcast(one),
        lambda: refusal(lambda: comm.Bcast(one, root)),
        lambda: refusal(lambda: comm.Bcast(one, root, op=op)),
    ]
    methods = type(comm).Bcast, type(comm).Iallreduce
    watched = (comm, one, other, op, root, Request, None, *methods)  # a request has its class
    for call in calls:
        for _ in range(20):  # what is kept until a few more calls were started
            call()
        before = [sys.getrefcount(obj) for obj in watched]
        for _ in range(TIMES):
            call()
        more = [sys.getrefcount(obj) - then for obj, then in zip(watched, before, strict=True)]
        assert all(abs(delta) < TIMES // 4 for delta in more), more


def refusal(call: Callable[[], object]) -> None:
    try:
        call()
    except (TypeError, MPI.Exception):
        return
    raise AssertionError("no error")


@promise
def methods_in_c_show_what_mpi4pys_show() -> None:
    for name in OPERATIONS:
        for method in (name, f"I{name.lower()}"):
            ours, theirs = getattr(type(direct), method), getattr(MPI.Intracomm, method)
            assert inspect.isroutine(ours), method
            assert inspect.signature(ours) == inspect.signature(theirs)
            assert ours.__name__ == method
            assert ours.__doc__ == theirs.__doc__
            assert method in repr(ours), repr(ours)
    assert lines_of_python(lambda: direct.barrier()) == 0


if __name__ == "__main__":
    keep()
