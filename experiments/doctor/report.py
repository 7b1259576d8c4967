"""What this machine offers and lacks, as one list, as a table for people and as JSON."""

import json
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

import hbmcomm
from experiments.console import printed
from experiments.doctor import checks, runtimes
from experiments.doctor.checks import Finding
from experiments.model.quantities import amount_text

MARKS = {True: ("ok", "green"), False: ("lacks", "red"), None: ("-", "dim")}


def findings() -> list[Finding]:
    """Every check's answer; nothing on the machine is changed or started."""
    return [
        Finding("Python", platform.python_version(), ok=True),
        checks.compiler(),
        checks.mpi(),
        checks.distribution("mpi4py", "mpi4py"),
        checks.distribution("NumPy", "numpy"),
        checks.memkind(),
        checks.hbm(),
        checks.numa_nodes(),
        checks.interleave_weights(),
        checks.cores(),
        checks.container_engine(),
        *runtimes.checks(),
        runtimes.emulated_machines(),
        checks.system_packages(),
        checks.privileges(),
        checks.seccomp(),
        checks.ptrace_scope(),
        checks.shared_memory(),
        checks.nameless_memory(),
        checks.huge_pages(),
        checks.numa_balancing(),
        checks.governor(),
        checks.turbo(),
    ]


def tuning_table(ranks: int) -> str:
    """The thresholds of transport direct for so many ranks, and which of them are changed."""
    heads = ("variable", "value", "default", "meaning")
    table = Table(*(Column(head, overflow="fold") for head in heads), box=None, pad_edge=False)
    for threshold in hbmcomm.tuning(ranks):
        changed = threshold.value != threshold.default
        value, default = (
            amount_text(number, threshold.unit) for number in (threshold.value, threshold.default)
        )
        style = "bold" if changed else ""
        table.add_row(
            *(threshold.variable, Text(value, style), default if changed else "", threshold.meaning)
        )
    return _printed(table)


def to_json(diagnosis: Sequence[Finding]) -> str:
    """A list of objects with name, value, ok, lack and remedy."""
    return json.dumps([asdict(finding) for finding in diagnosis], indent=2) + "\n"


def to_table(diagnosis: Sequence[Finding]) -> str:
    """The table, and below it each lack with its command on a line of its own, ready to copy."""
    table = Table("", "what", Column("found", overflow="fold"), box=None, pad_edge=False)
    for finding in diagnosis:
        mark, style = MARKS[finding.ok]
        table.add_row(Text(mark, style), Text(finding.name), Text(finding.value))
    return _printed(table, *_lacks(diagnosis))


def _lacks(diagnosis: Sequence[Finding]) -> Iterator[RenderableType]:
    for finding in diagnosis:
        if finding.lack:
            yield Text()
            yield Text(f"{finding.name}: {finding.lack}")
        if finding.remedy:
            yield f"    {finding.remedy}"


def _printed(*parts: RenderableType) -> str:
    width = shutil.get_terminal_size((100, 24)).columns
    return printed(*parts, width=width, terminal=sys.stdout.isatty())
