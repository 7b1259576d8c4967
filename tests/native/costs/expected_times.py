"""The tables of docs/costs.md, from the counts of the native test.

    expected_times.py COUNTING [PAGE]

COUNTING is the native test program, built with -DHBM_COUNTERS. Prints the tables; with PAGE, also
replaces the old tables there.
"""

import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Literal

from tests.native.costs.cost_model import MACHINES, Call, Event, Machine, Place, expected_time
from tests.native.costs.rivals import algorithms

BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->\n"
Calls = dict[tuple[str, str, int], Call]  # of a machine, an operation, a size in bytes
Times = dict[str, list[float | None]]  # of an algorithm: one for each call
KINDS: dict[str, Literal["store", "read", "data", "write"]] = {
    "s": "store",
    "r": "read",
    "d": "data",
    "w": "write",
}
PARAMETERS = ("polls", "flight", "service", "cache_link", "package_link")


def parse(lines: Iterable[str]) -> Calls:
    """Reads the output of `core_test events`, which events.c describes."""
    calls: Calls = {}
    call = Call([])
    for line in lines:
        if line.startswith("call "):
            machine, operation, size = line[5:].split("/")
            call = calls[machine, operation, int(size)] = Call([])
        elif line.startswith("rank "):
            call.places.append(Place(*map(int, line.split()[1:])))
            call.events.append([])
        else:
            head, value = line.split("=")
            kind, (other, _, word) = head[0], head[1:].partition(" ")
            call.events[-1].append(Event(KINDS[kind], int(other or 0), word, int(value)))
    return calls


def with_others(calls: Calls) -> dict[str, list[Call | None]]:
    """The calls of each algorithm."""
    by: dict[str, list[Call | None]] = {"direct": list(calls.values())}
    for (name, operation, size), call in calls.items():
        for algorithm, make in algorithms(has_l3=MACHINES[name].has_l3).items():
            by.setdefault(algorithm, []).append(make(call.places, operation, size))
    return by


def times(calls: Calls, by: dict[str, list[Call | None]], **factors: float) -> Times:
    """Expected ns of each call by each algorithm, with parameters multiplied by `factors`."""
    machines = [scaled(MACHINES[name], factors) for name, _, _ in calls]
    return {
        algorithm: [
            None if call is None else expected_time(call, machine)
            for call, machine in zip(made, machines, strict=True)
        ]
        for algorithm, made in by.items()
    }


def scaled(machine: Machine, factors: dict[str, float]) -> Machine:
    return replace(machine, **{name: getattr(machine, name) * f for name, f in factors.items()})


def size_in_words(size: int) -> str:
    return "" if not size else f" {size} B" if size < 1024 else f" {size // 1024} KiB"


def microseconds(ns: float | None) -> str:
    return "–" if ns is None else f"{ns / 1000:.2f}" if ns < 1e5 else f"{ns / 1000:.0f}"


def table_of_times(calls: Calls, expected: Times) -> str:
    """A row for each operation and algorithm, a column for each machine."""
    at = {key: i for i, key in enumerate(calls)}
    ranks = {name: len(call.places) for (name, _, _), call in calls.items()}
    lines = [
        "| operation | | " + " | ".join(f"{name}, {p} ranks" for name, p in ranks.items()) + " |",
        "|---|---|" + "--:|" * len(ranks),
    ]
    for operation, size in dict.fromkeys((operation, size) for _, operation, size in calls):
        for algorithm, of in expected.items():
            row = [of[at[name, operation, size]] for name in ranks]
            if any(ns is not None for ns in row):
                head = f"| {operation}{size_in_words(size)} | {algorithm} | "
                lines.append(head + " | ".join(map(microseconds, row)) + " |")
    return "\n".join(lines) + "\n"


def table_of_parameters() -> str:
    lines = [
        "| machine | latency | polls | flight | service | cache link | package link |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for name, m in MACHINES.items():
        latency = " / ".join(f"{ns:g}" if ns else "–" for ns in m.latency)
        rest = " | ".join(f"{getattr(m, p):g}" if getattr(m, p) else "–" for p in PARAMETERS)
        lines.append(f"| {name} | {latency} | {rest} |")
    return "\n".join(lines) + "\n"


def is_fastest(expected: Times) -> list[bool]:
    """Whether direct is faster than, or as fast as, all others (within 2 %)."""
    direct, *others = expected.values()
    return [
        all(o is None or d is None or d <= 1.02 * o for o in row)
        for d, *row in zip(direct, *others, strict=True)
    ]


_given: list[tuple[Calls, dict[str, list[Call | None]], list[bool]]] = []
"""What flips() is about: given once to each process, because it is large."""


def flips(parameter: str, factor: float) -> int:
    """The number of cells that change if a parameter is so many times as large."""
    ((calls, by, base),) = _given
    changed = is_fastest(times(calls, by, **{parameter: factor}))
    return sum(a != b for a, b in zip(base, changed, strict=True))


def doubts(calls: Calls, by: dict[str, list[Call | None]], base: list[bool]) -> str:
    """The number of cells that change if a parameter is half or twice as large."""
    changes = [*product(PARAMETERS, (0.5, 2.0))]
    with ProcessPoolExecutor(initializer=_given.append, initargs=((calls, by, base),)) as pool:
        cells = dict(zip(changes, pool.map(flips, *zip(*changes, strict=True)), strict=True))
    shown = [f"{p.replace('_', ' ')} {cells[p, 0.5]} / {cells[p, 2.0]}" for p in PARAMETERS]
    return f"Cells that change if a parameter is halved / doubled: {', '.join(shown)}.\n"


def tables(calls: Calls) -> str:
    by = with_others(calls)
    expected = times(calls, by)
    fastest = is_fastest(expected)
    verdict = f"`direct` is the fastest, or level, in {sum(fastest)} of {len(fastest)} cells.\n"
    prose = verdict + doubts(calls, by, fastest)
    return "\n".join((table_of_parameters(), table_of_times(calls, expected), prose))


def main(counting: str, page: str | None = None) -> None:
    run = subprocess.run([counting, "events", "0", "0"], check=True, text=True, capture_output=True)
    made = tables(parse(run.stdout.splitlines()))
    print(made, end="")
    if page:
        before, rest = Path(page).read_text().split(BEGIN)
        after = rest.split(END)[1]
        Path(page).write_text(before + BEGIN + made + END + after)


if __name__ == "__main__":
    main(*sys.argv[1:])
