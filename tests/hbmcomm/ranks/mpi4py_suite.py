"""Rank program: mpi4py's own tests, with Communicators for COMM_WORLD and COMM_SELF.

The tests take their communicators from the module mpi4py.MPI, so that is where ours are put; what
they derive from these, and all else that they test, is then ours as well.

Usage: mpi4py_suite.py FOLDER TRANSPORT MODULE... with FOLDER the `test` folder of mpi4py's source.
For comparison, TRANSPORT may be "none" (COMM_WORLD and COMM_SELF themselves) or "duplicate"
(mpi4py's duplicates of them). Rank 0 prints one line of counts, one for each test that is left out,
and the traceback of each that fails, of all ranks.
"""

import faulthandler
import os
import sys
import unittest
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from ending import say
from mpi4py import MPI

from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
FOLDER, TRANSPORT, *MODULES = sys.argv[1:]
VENDOR = MPI.get_vendor()[0]

OPEN_MPI, MPICH, INTEL = "Open MPI", "MPICH", "Intel MPI"
EVERYWHERE = (OPEN_MPI, MPICH, INTEL)

PREDEFINED = "needs a predefined communicator: a duplicate fails as well"
NEGATIVE = "handles of all duplicates are negative here: a plain one fails as well"
CLASS = "wants the class of a communicator from its handle, or an object without a communicator"
ALONE = "fails with mpi4py alone"

LEFT_OUT: dict[str, tuple[tuple[str, ...], str]] = {
    "test_comm.TestCommSelf.testPickle": (EVERYWHERE, PREDEFINED),
    "test_comm.TestCommWorld.testPickle": (EVERYWHERE, PREDEFINED),
    "test_exceptions.TestExcComm.testFree*": (EVERYWHERE, PREDEFINED),
    "test_objmodel.*.testSafeFreeConstant": (EVERYWHERE, PREDEFINED),
    "test_environ.*.testLastUsedCode": ((OPEN_MPI,), PREDEFINED),
    "test_errorcode.*.testAddErrorClassCodeString": ((OPEN_MPI,), PREDEFINED),
    "test_cffi.*.testHandleValue": ((MPICH, INTEL), NEGATIVE),
    "test_ctypes.*.testHandleValue": ((MPICH, INTEL), NEGATIVE),
    "test_objmodel.*.testCAPI": (EVERYWHERE, CLASS),
    "test_objmodel.*.testHandle": (EVERYWHERE, CLASS),
    "test_cffi.*.testHandleAddress": (EVERYWHERE, CLASS),
    "test_ctypes.*.testHandleAdress": (EVERYWHERE, CLASS),
    "test_mpiabi.*.testGetFortranInfo": ((MPICH, INTEL), f"{ALONE}: needs a Fortran runtime"),
    "test_dynproc.*": ((INTEL,), f"{ALONE}: a crash"),
}
"""Tests that are not run on Communicators, by what they are called: under which MPIs, and why."""


STUCK = 60.0  # seconds that one test may take


class Results(unittest.TestResult):
    def startTest(self, test: unittest.TestCase) -> None:
        faulthandler.dump_traceback_later(STUCK, exit=True)
        super().startTest(test)


def tests() -> tuple[unittest.TestSuite, Counter[str]]:
    """The tests to run, and how many are left out for which reason."""
    chosen, left_out = unittest.TestSuite(), Counter[str]()
    for test in _flat(unittest.defaultTestLoader.loadTestsFromNames(MODULES)):
        reason = "" if TRANSPORT == "none" else _reason(test.id())
        if reason:
            left_out[reason] += 1
        else:
            chosen.addTest(test)
    return chosen, left_out


def _flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


def _reason(name: str) -> str:
    for pattern, (vendors, reason) in LEFT_OUT.items():
        if VENDOR in vendors and fnmatchcase(name, pattern):
            return reason
    return ""


def put_ours_in_place() -> None:
    if TRANSPORT == "duplicate":
        MPI.COMM_WORLD, MPI.COMM_SELF = WORLD.Dup(), MPI.COMM_SELF.Dup()
    elif TRANSPORT != "none":
        MPI.COMM_WORLD, MPI.COMM_SELF = (
            Communicator(predefined, transport=TRANSPORT) for predefined in (WORLD, MPI.COMM_SELF)
        )


def loosen() -> None:
    """The one check inside a longer test that is left out; its reason is CLASS."""
    if "test_comm_topo" in MODULES:
        topologies: Any = sys.modules["test_comm_topo"]
        topologies.BaseTestTopo.checkHandle = lambda self, comm: None


def main() -> int:
    sys.path.insert(0, FOLDER)
    sys.dont_write_bytecode = True
    # Tests that start processes skip themselves. With mpi4py alone they hang under Open MPI at
    # times, MPICH's `mpiexec -bind-to` refuses to start more, and they skip Intel MPI anyway.
    os.environ["MPI4PY_TEST_SPAWN"] = "no"
    sys.modules["cupy"] = sys.modules["numba"] = None  # type: ignore[assignment]
    put_ours_in_place()
    chosen, left_out = tests()
    if TRANSPORT not in ("none", "duplicate"):
        loosen()
    results = Results()
    named = sum(isinstance(getattr(test, "COMM", None), Communicator) for test in _flat(chosen))
    chosen.run(results)
    faulthandler.cancel_dump_traceback_later()
    failed = {str(test): trace for test, trace in results.failures + results.errors}
    everywhere = WORLD.gather(failed)
    if WORLD.rank == 0:
        bad = {test for failures in everywhere for test in failures}
        skipped = len(results.skipped)
        say(
            f"{TRANSPORT}, {WORLD.size} ranks: {results.testsRun} run, {len(bad)} failed, "
            f"{skipped} skipped by themselves, {left_out.total()} left out; "
            f"{named} of those run name a Communicator"
        )
        for reason, number in left_out.items():
            say(f"left out: {number}: {reason}")
        for rank, failures in enumerate(everywhere):
            for test, trace in failures.items():
                say(f"rank {rank}: {test}\n{trace}")
    return bool(WORLD.bcast(len(bad) if WORLD.rank == 0 else None))


if __name__ == "__main__":
    sys.exit(main())
