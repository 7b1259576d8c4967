"""Program: torch's own tests of torch.distributed, from its wheel, on the backend "hbm".

Their source asks for gloo by name, to choose what to test and which group to make. The name is
replaced in it, so that nothing is left out because of a name. Ranks are forked from this process,
which has loaded torch: a test takes half a second, not four.

Usage: torch_suite.py BACKEND RANKS [PATTERN...], as in torch_suite.py hbm 3 '*gather*' '!*cuda*'.
A name must match a pattern, and none with "!". BACKEND may be gloo, for comparison. Prints a line
for each test with its outcome, the traceback of each that fails, and a line of counts.
"""

import importlib.util
import logging
import os
import sys
import tempfile
import unittest
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.testing._internal import common_distributed

import hbmcomm.torch

THEIRS = "torch.testing._internal.distributed.distributed_test"
SUBGROUPS = 3  # ranks that tests of subgroups need: their group has ranks 1 and 2
STUCK = 60  # seconds that one test may take

LEFT_OUT = {
    "test_ddp_logging_data_cpu": "torch logs the name of every backend from elsewhere as 'custom'",
}
"""Tests that fail on hbm and pass on gloo, and why."""

ONLY_MPI = 'BACKEND != "mpi", "Only MPI supports'
"""Tests of all_to_all that gloo does not pass; hbm does."""


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """torch.distributed's function refuses all names of backends but gloo; a group's method works.

    Args:
        timeout: A timedelta, or seconds.
    """
    if group is not dist.GroupMember.NON_GROUP_MEMBER:
        chosen: Any = dist.group.WORLD if group is None else group
        chosen.monitored_barrier(timeout or timedelta(minutes=30), wait_all_ranks=wait_all_ranks)


def theirs(backend: str) -> ModuleType:
    """torch's module of tests, with a backend's name in the place of gloo's."""
    spec = importlib.util.find_spec(THEIRS)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    for old in ('"gloo"', "dist.Backend.GLOO"):
        assert old in source
        source = source.replace(old, f'"{backend}"')
    if backend == "hbm":
        for old, new in (
            ("dist.monitored_barrier(", "_monitored_barrier("),
            (ONLY_MPI, ONLY_MPI.replace('"mpi"', '"hbm"')),
        ):
            assert old in source
            source = source.replace(old, new)
    module = sys.modules[THEIRS] = importlib.util.module_from_spec(spec)
    vars(module)["_monitored_barrier"] = monitored_barrier
    exec(compile(source, spec.origin, "exec"), vars(module))
    return module


def cases(backend: str, ranks: int) -> type[unittest.TestCase]:
    """The class of all tests; the method's name chooses one."""
    if ranks >= SUBGROUPS:  # torch skips them with less than 8 ranks, to save time
        common_distributed.skip_if_small_worldsize = lambda test: test
    for backends in common_distributed.DistTestCases.backend_feature.values():
        if "gloo" in backends:
            backends.add(backend)
    module = theirs(backend)

    class Forked(module.TestDistBackend, module.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return Forked


def is_wanted(name: str, patterns: list[str]) -> bool:
    if any(fnmatchcase(name, pattern[1:]) for pattern in patterns if pattern[0] == "!"):
        return False
    wanted = [pattern for pattern in patterns if pattern[0] != "!"]
    return not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)


def run(backend: str, ranks: str, patterns: list[str]) -> int:
    """How many tests failed."""
    chosen, left_out = cases(backend, int(ranks)), 0
    suite = unittest.TestSuite()
    for name in unittest.defaultTestLoader.getTestCaseNames(chosen):
        if not is_wanted(name, patterns):
            continue
        if backend == "hbm" and name in LEFT_OUT:
            print(f"left out {name}: {LEFT_OUT[name]}")
            left_out += 1
        else:
            suite.addTest(chosen(name))
    results = unittest.TextTestRunner(sys.stdout, verbosity=2).run(suite)
    failed = len(results.failures) + len(results.errors)
    skipped = len(results.skipped)
    print(
        f"{backend}, {ranks} ranks: {results.testsRun - skipped} run, {failed} failed, "
        f"{skipped} skipped by themselves, {left_out} left out"
    )
    return failed


def main() -> int:
    backend, ranks, *patterns = sys.argv[1:]
    os.environ |= {"BACKEND": backend, "WORLD_SIZE": ranks, "OMP_NUM_THREADS": "1"}
    torch.set_num_threads(1)
    common_distributed.TIMEOUT_DEFAULT = STUCK
    logging.getLogger(common_distributed.__name__).setLevel(logging.WARNING)
    assert hbmcomm.torch  # imported to register the backend
    with tempfile.TemporaryDirectory() as scratch:  # the tests leave files there
        tempfile.tempdir = os.environ["TMPDIR"] = scratch
        os.environ["TEMP_DIR"] = scratch
        return bool(run(backend, ranks, patterns))


if __name__ == "__main__":
    sys.exit(main())
