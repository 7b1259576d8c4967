"""A pytest plugin: a skip for a reason that skips.toml does not list fails the run.

Workers of xdist report to their controller, which alone judges.
"""

import re
import tomllib
from pathlib import Path

import pytest

LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["skip"]
UNLISTED = pytest.StashKey[list[str]]()
TITLE = "skipped, and not on the list tests/skips.toml"


def is_listed(path: str, reason: str) -> bool:
    """Whether the list knows that tests of a file may be skipped with this reason."""
    return any(
        path.startswith(tuple(listed["where"])) and re.fullmatch(listed["reason"], reason)
        for listed in LISTED
    )


class Skips:
    """Collects skips that are not listed."""

    def __init__(self, config: pytest.Config) -> None:
        self._found = config.stash[UNLISTED]

    def _look(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        reason = text.removeprefix("Skipped: ").strip()
        if not is_listed(report.nodeid.partition("::")[0], reason):
            self._found.append(f"{report.nodeid}: {reason}")

    pytest_runtest_logreport = _look
    pytest_collectreport = _look


def pytest_configure(config: pytest.Config) -> None:
    config.stash[UNLISTED] = []
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skips(config))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.stash[UNLISTED] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.stash[UNLISTED]:
        terminalreporter.section(TITLE, red=True)
        for line in config.stash[UNLISTED]:
            terminalreporter.line(line)
