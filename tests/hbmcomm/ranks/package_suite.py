"""Rank program: pytest over a package's own tests, with the outcome of each test in a file.

Usage: package_suite.py FOLDER WORDS... with pytest's WORDS. FOLDER/RANK.json gets the repr of
MPI.COMM_WORLD and {test: outcome}; files that tests write without a path go to FOLDER. Exit code 0
whatever the outcomes: another one would end the other ranks before they have written theirs.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from mpi4py import MPI

FOLDER, WORDS = Path(sys.argv[1]), sys.argv[2:]
WORST = ("error", "failed", "xpassed", "xfailed", "skipped", "passed")


class Outcomes:
    """A plugin of pytest: the worst outcome of a test's setup, call and teardown."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def note(self, name: str, outcome: str) -> None:
        self.of[name] = min(self.of.get(name, "passed"), outcome, key=WORST.index)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = {"skipped": "xfailed", "passed": "xpassed"}.get(outcome, outcome)
        elif outcome == "failed" and report.when != "call":
            outcome = "error"
        self.note(report.nodeid, outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self.note(report.nodeid, {"failed": "error"}.get(report.outcome, report.outcome))


def main() -> None:
    world, rank, outcomes = repr(MPI.COMM_WORLD), MPI.COMM_WORLD.rank, Outcomes()
    os.chdir(FOLDER)
    sys.dont_write_bytecode = True
    os.environ["PATH"] = "/usr/bin:/bin"  # no mpiexec: jobs that tests start would not be hbmcomm's
    scratch = ["-p", "no:cacheprovider", "--basetemp", str(FOLDER / f"scratch-{rank}")]
    pytest.main([*scratch, *WORDS], plugins=[outcomes])
    report = {"world": world, "outcomes": outcomes.of}
    (FOLDER / f"{rank}.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
