"""Calls in flight on one rank: completed in random order, in every way that MPI has."""

import contextlib
import operator
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpi4py import MPI
from numpy.random import Generator

WAYS = ("Wait", "Test", "Waitall", "Waitany", "Waitsome", "Testall", "Testany", "Testsome")
SOON = 0.001  # seconds until a wait is interrupted, at most
EXPONENTS = (-6.0, -3.0)  # of ten: seconds until a start is interrupted, which takes some 1e-5
ATTEMPTS = 3  # to start one call


@dataclass
class Flight:
    """A request, and what is to be looked at once it is complete."""

    request: MPI.Request
    check: Callable[[], None]
    has_landed: bool = False

    def land(self) -> None:
        assert not self.has_landed, "complete twice"
        self.has_landed = True
        self.check()


class Interruption(Exception):
    """Raised by a signal's handler inside a call."""


class Interrupter:
    """Raises an Interruption in this thread, once, at a random moment while it is armed."""

    def __init__(self) -> None:
        self.armed = False
        self.count = 0
        signal.signal(signal.SIGALRM, self._interrupt)

    def _interrupt(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            self.count += 1
            raise Interruption

    def set_off(self, seconds: float) -> None:
        self.armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def rest(self) -> None:
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def complete(flights: list[Flight], rng: Generator, interrupter: Interrupter | None) -> None:
    """Wait for some calls, and look at each as soon as it is known to be complete."""
    flights = [flights[index] for index in rng.permutation(len(flights))]
    way = str(rng.choice(WAYS))
    is_mpich = MPI.get_vendor()[0] in ("MPICH", "Intel MPI")
    if way == "Testall" and is_mpich and any(isinstance(f.request, MPI.Prequest) for f in flights):
        way = "Testany"  # MPICH's Testall calls persistent collectives of MPI an error
    left = dict(enumerate(flights))
    requests = [f.request for f in flights]
    while left:
        if way == "Wait":
            done = [min(left)]
            wait(requests[min(left)], rng, interrupter)
        else:
            done = completed(way, requests, list(left))
        for index in done:
            flight = left.pop(index)
            if way != "Wait" and rng.random() < 0.5:
                flight.request.Wait()  # at once
            flight.land()
    if way not in ("Wait", "Test"):
        stay = [r for r in requests if r and not isinstance(r, MPI.Prequest)]
        assert not stay, f"{way} leaves handles"


def start(call: Callable[[], Any], rng: Generator, interrupter: Interrupter | None) -> Any:
    """Start an operation; often a signal's handler raises meanwhile, and it may be started again.

    `call` is a function in C, and so is what keeps its result: it has started where there is one.
    """
    results: list[Any] = []
    for _ in range(ATTEMPTS if interrupter and rng.random() < 0.5 else 0):
        with contextlib.suppress(Interruption, KeyboardInterrupt):
            interrupter.set_off(10 ** rng.uniform(*EXPONENTS))
            try:
                results.extend(map(operator.call, (call,)))
            finally:
                interrupter.rest()
        if results:
            return results[0]
    return call()


def wait(request: Any, rng: Generator, interrupter: Interrupter | None) -> None:
    """Wait for one; often a signal's handler raises meanwhile, and it is waited for again."""
    if interrupter is None or rng.random() < 0.5:
        request.Wait()
        return
    while True:
        try:
            interrupter.set_off(max(rng.uniform(-SOON, SOON), 1e-6))
            try:
                request.Wait()
            finally:
                interrupter.rest()
            return
        except (Interruption, KeyboardInterrupt):  # the latter from within an allocation
            continue


def completed(way: str, requests: list[MPI.Request], left: list[int]) -> list[int]:
    """Which requests one call of MPI says are complete."""
    match way:
        case "Waitall":
            MPI.Request.Waitall(requests)
            return left
        case "Testall":
            return left if MPI.Request.Testall(requests) else []
        case "Test":
            return [index for index in left if requests[index].Test()]
        case "Waitany":
            return [MPI.Request.Waitany(requests)]
        case "Testany":
            index, flag = MPI.Request.Testany(requests)
            return [index] if flag else []
    indices = getattr(MPI.Request, way)(requests)
    assert indices is not None, f"{way} finds no request in flight, but {left} are"
    return list(indices)
