"""Rank program: persistent calls are what MPI's are. For two ranks."""

import copy
import gc
import pickle
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError, Plan
from hbmcomm.transports.mpi_progress import serves_requests
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SHORT, LONG = 1, 1 << 20  # of float32: 4 B and 4 MiB
LATE, AT_ONCE = 0.3, 0.1  # seconds
REFUSALS = (HbmcommError, MPI.Exception)

comm = Communicator(WORLD, "regular", "direct")


class Sum:
    """A persistent sum over the ranks, of changing numbers."""

    def __init__(self, count: int, make: Callable[..., Any], of: Communicator = comm) -> None:
        self.x, self.y = make(count, "float32"), make(count, "float32")
        self.plan, self.number = of.Allreduce_init(self.x, self.y), 0

    def start(self) -> None:
        self.number += 1
        self.x[:], self.y[:] = RANK + self.number, -1
        self.plan.Start()

    def check(self) -> None:
        assert (self.y == 1 + 2 * self.number).all()

    def wait(self) -> None:
        self.plan.Wait()
        self.check()


def sums(of: Communicator = comm) -> list[Sum]:
    return [Sum(count, make, of) for count in (SHORT, LONG) for make in (comm.empty, np.empty)]


@promise
def test_never_blocks() -> None:
    for planned in sums():
        WORLD.Barrier()
        if RANK:
            time.sleep(LATE)
        began = time.monotonic()
        planned.start()
        if RANK == 0:
            assert not planned.plan.Test()
            assert time.monotonic() - began < AT_ONCE
        while not planned.plan.Test():
            pass
        planned.check()
        assert planned.plan.Test()


@promise
def a_plan_keeps_its_buffers() -> None:
    for make in (comm.empty, np.empty):
        for _ in range(2):
            x, y = make(LONG, "float32"), make(LONG, "float32")
            x[:] = RANK + 1
            plan, result = comm.Allreduce_init(x, y), weakref.ref(y)
            del x, y
            gc.collect()
            others = [make(LONG, "float32") for _ in range(4)]
            for array in others:
                array[:] = -7
            plan()
            assert (result() == 3).all()
            plan.Start()
            gc.collect()
            plan.Wait()
            assert (result() == 3).all()
            assert all((array == -7).all() for array in others)
            plan.Free()
            gc.collect()
            assert result() is None


@promise
def it_is_started_once_at_a_time() -> None:
    for planned in sums():
        if RANK == 0:
            planned.start()
            if not planned.plan.Test():
                for call in (planned.plan.Start, planned.plan.Free):
                    with refused(REFUSALS):
                        call()
            WORLD.Barrier()
        else:
            WORLD.Barrier()
            planned.start()
        planned.wait()


@promise
def an_active_plan_is_started_by_nobody_complete_or_not() -> None:
    """Until Wait, Test or MPI's Waitall completes it: the same error on every rank."""
    threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
    with Communicator(WORLD, "regular", "hierarchical") as on_hosts:
        for planned in sums() + (sums(on_hosts) if threads else []):
            completions = [planned.plan.Wait, planned.plan.Test]
            if serves_requests():
                completions += [lambda plan=planned.plan: MPI.Request.Waitall([plan])]
            for complete in completions:
                if RANK:
                    time.sleep(0.02)  # in flight on rank 0, complete as soon as started on rank 1
                planned.start()
                for call in (planned.plan.Start, planned.plan):
                    with refused(HbmcommError, "this plan is active: it was started, and"):
                        call()
                WORLD.Barrier()
                time.sleep(0.02)  # complete on every rank
                for call in (planned.plan.Start, planned.plan):
                    with refused(HbmcommError, "this plan is active: it was started, and"):
                        call()
                while complete() is False:
                    pass
                planned.check()
                planned.number += 1
                planned.x[:] = RANK + planned.number
                planned.plan()
                planned.check()
            planned.plan.Free()


@promise
def an_active_plan_that_packs_its_data_is_started_by_nobody() -> None:
    every_other = MPI.FLOAT.Create_vector(2, 1, 2).Commit()
    x = np.zeros(4, "float32")
    plan = comm.Bcast_init([x, 1, every_other])
    for number in range(3):
        x[:] = number if RANK == 0 else -1
        plan.Start()
        for call in (plan.Start, plan):
            with refused(HbmcommError, "this plan is active: it was started, and"):
                call()
        plan.Wait()
        assert x[0] == x[2] == number
    every_other.Free()


@promise
def a_plan_that_packs_its_data_keeps_its_arguments() -> None:
    every_other = MPI.FLOAT.Create_vector(2, 1, 2).Commit()
    x, other = np.zeros(4, "float32"), np.zeros(4, "float32")
    spec: list[Any] = [x, 1, every_other]
    plan = comm.Bcast_init(spec)
    for number, change in enumerate((lambda: spec.__setitem__(0, other), spec.clear), 1):
        change()
        x[:] = number if RANK == 0 else -1
        plan()
        assert x[0] == x[2] == number and not other.any()
    counts, spread = np.full(2, 1), np.array([1, 0])
    taken = np.zeros(6, "float32")
    gathers = comm.Allgatherv_init(x[:2], [taken, counts, spread, every_other])
    counts[:], spread[:] = 0, 0
    x[:] = RANK + 1
    gathers()
    assert taken.tolist() == [2, 0, 2, 1, 0, 1]
    every_other.Free()


@promise
def a_plan_that_packs_its_data_says_what_was_freed() -> None:
    for transport in ("direct", "hierarchical"):
        every_other = MPI.FLOAT.Create_vector(2, 1, 2).Commit()
        of = Communicator(WORLD, "regular", transport)
        plan = of.Bcast_init([np.zeros(4, "float32"), 1, every_other])
        of.Free()
        for call in (plan, plan.Start, plan):
            with refused(HbmcommError, "this communicator was freed"):
                call()
        every_other.Free()


@promise
def copies_of_a_plan_are_refused_and_a_plan_of_nothing_starts_nothing() -> None:
    plan = comm.Bcast_init(np.zeros(4, "float32"))
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with refused(ValueError, "cannot serialize"):
            make(plan)
    plan()
    for call in (Plan().Start, Plan()):
        with refused(MPI.Exception):
            call()


@promise
def a_plan_is_the_null_request_once_it_is_freed() -> None:
    first, second = sums()[:2]
    for planned in first, second:
        for _ in range(2):
            assert planned.plan and planned.plan == planned.plan != MPI.REQUEST_NULL
            assert not (MPI.REQUEST_NULL == planned.plan or planned.plan == 3)  # noqa: SIM300
            planned.start()
            assert planned.plan and planned.plan != MPI.REQUEST_NULL
            planned.wait()
    assert first.plan != second.plan
    first.plan.Free()
    assert not first.plan and first.plan == MPI.REQUEST_NULL and second.plan != first.plan


@promise
def a_status_of_an_earlier_message_is_emptied() -> None:
    for planned in sums():
        for is_started in (False, True):
            for complete in (planned.plan.Wait, planned.plan.Test):
                status = MPI.Status()
                status.source, status.tag = 1, 7
                if is_started:
                    planned.start()
                while not complete(status):
                    assert status.tag == 7
                assert (status.source, status.tag) == (MPI.ANY_SOURCE, MPI.ANY_TAG)


@promise
def startall_is_refused_and_harms_nothing() -> None:
    for planned in sums():
        for _ in range(2):
            with refused(REFUSALS):
                MPI.Prequest.Startall([planned.plan])
            planned.start()
            planned.wait()


if __name__ == "__main__":
    keep()
