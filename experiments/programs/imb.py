"""The Intel MPI Benchmarks as an arm of a campaign: its arguments, and its tables as our cells.

Pure; imb_run.py starts these commands. IMB-MPI1 comes with the impi-rt wheel. Read off its source
(github.com/intel/mpi-benchmarks: IMB_bcast.c, helper_IMB_functions.h): each operation is timed
alone by MPI_Wtime and, with `-sync on`, followed by a barrier; a row of its table holds the mean
over the row's operations of each rank, and of those the least, the greatest and the mean over
ranks. A size that its list names again is measured again, with new buffers: so a list that names
every size ROWS times yields samples instead of one mean.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.model.contender_names import CALLS
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Launch
from experiments.model.lower_bound import BARRIER

FLAVOUR = "impi"  # the MPI that the program is linked with
NAME = "IMB"  # as launch.EXTERNAL calls it
RUN = "experiments.programs.imb_run"  # the module that starts its ranks
PROGRAM = "IMB-MPI1"
TRANSPORT = "imb"
ROWS = 20  # samples of a cell
WARM_ROWS = 3  # measured before those, marked, left out; each warms its own buffers up as well
OPERATIONS = 50  # in a row, at most: enough to forget the new buffers and the printing between rows
VOLUME = 4 * 2**20  # bytes that a row moves before its operations are fewer than OPERATIONS
LARGEST = 2**30  # its -msglog ends below 31, and without -msglog its sizes end at 4 MiB
CACHE_LINE = 64
COLUMNS = ("min", "mean", "max")  # of its samples: over the ranks; it prints no rank's own

BENCHMARKS = {name: call for name, call in CALLS.items() if name != BARRIER}
"""Our operations by IMB's names; a size is the same in both: what one rank has for another."""

REDUCTIONS = ("reduce", "allreduce", "reduce_scatter")
TYPES = {"float32": "float", "float64": "double", "int32": "int"}
"""IMB's names of our dtypes; it has no integer of 64 bits."""

DIFFERENCES = (
    "imb times over buffers from malloc, new for every sample; the harness over arrays in memory "
    "that the ranks share, the same throughout",
    "imb does not rewrite the send buffer between operations, and its broadcast receives into "
    "another buffer than the root sends from",
    f"a sample of imb is the mean of up to {OPERATIONS} operations and its greatest over the "
    "ranks; one of the harness is a single operation (or group), the greatest over the ranks",
    "imb prints times in steps of 0.01 us",
    "imb sums MPI_Wtime around each operation; the harness reads Python's clock, whose cost stays "
    "below 5 % of an interval and is part of it",
    "imb checks no result in its timed runs",
)
"""Differences besides Python in a comparison of `imb` with `mpi`."""


class ImbFailed(ExperimentsError):
    """IMB-MPI1 printed something other than the tables that were asked for."""


Runs = dict[tuple[str, int], tuple[int, ...]]
"""Starts of IMB-MPI1, by operation and its repetitions in a row: bytes, in their order."""


def plan(launch: Launch) -> tuple[Runs, dict[tuple[str, int], str]]:
    """What IMB-MPI1 is asked for, and why some (operation, bytes) of the launch are left out.

    Only what the launch measures in regular, local memory has a counterpart. Starts keep the
    launch's random order, and so do the sizes in each. How long a cell takes is bounded by ROWS and
    VOLUME, not by the measurement's time cap.
    """
    wanted = dict.fromkeys(
        (cell.operation, cell.bytes)
        for cell in launch.cells
        if cell.kind == "regular" and cell.locality == "local"
    )
    left_out: dict[tuple[str, int], str] = {}
    runs: Runs = {}
    for operation, size in wanted:
        reason = _unsuitable(operation, size, launch.dtype)
        if reason:
            left_out[operation, size] = reason
            continue
        run = operation, max(1, min(OPERATIONS, VOLUME // size))
        runs[run] = (*runs.get(run, ()), size)
    return runs, left_out


def _unsuitable(operation: str, size: int, dtype: str) -> str:
    if operation not in BENCHMARKS:
        return f"IMB has no benchmark of {operation}"
    if operation in REDUCTIONS and dtype not in TYPES:
        return f"IMB does not reduce {dtype}"
    if size > LARGEST:
        return f"IMB takes sizes up to {LARGEST} bytes"
    return ""


def length_list(sizes: Iterable[int]) -> str:
    """The text of a -msglen file: every size as often as it is to be measured, back to back."""
    return "".join(f"{size}\n" * (WARM_ROWS + ROWS) for size in sizes)


def arguments(
    launch: Launch,
    operation: str,
    repetitions: int,
    sizes: Sequence[int],
    lengths: Path,
    cache: int,
) -> list[str]:
    """IMB-MPI1's arguments.

    Args:
        lengths: the file that holds length_list(sizes).
        cache: bytes of the last-level cache, for buffers that rotate.
    """
    largest = max(sizes)
    type_name = TYPES.get(launch.dtype, "double")  # int64 is only moved, and a double is as wide
    switches = {
        "-npmin": str(launch.ranks),
        "-iter": str(repetitions),
        "-iter_policy": "off",
        "-msglen": str(lengths),
        "-msglog": f"0:{max(1, (largest - 1).bit_length())}",
        "-mem": str(1 + 2 * launch.ranks * largest // 2**30),
        "-root_shift": "off",
        "-sync": "on" if launch.measurement.cadence == "isolated" else "off",
        "-imb_barrier": "off",
        "-zero_size": "off",
        "-data_type": type_name,
        "-red_data_type": type_name,
    }
    if launch.measurement.cache == "rotating":
        switches["-off_cache"] = f"{cache / 2**20:g},{CACHE_LINE}"
    words = [word for pair in switches.items() for word in pair]
    return [*words, BENCHMARKS[operation]]


@dataclass(frozen=True)
class Row:
    """One line of a table: seconds, means over `repetitions`, over the ranks."""

    bytes: int
    repetitions: int
    least: float
    greatest: float
    mean: float


def version(text: str) -> str:
    """What the program calls itself: "Intel(R) MPI Benchmarks 2021.11, MPI-1 part"."""
    match = re.search(r"^#\s*(Intel\(R\) MPI Benchmarks.*\S)", text, re.MULTILINE)
    return match[1] if match else "not found"


def parse(text: str, operation: str, ranks: int) -> list[Row]:
    """The rows of an operation's table with that many processes.

    Raises:
        ImbFailed: there is no such table, or a line in it that is no row.
    """
    name = BENCHMARKS[operation]
    head = re.search(
        rf"^# Benchmarking {name}\s*\n# #processes = {ranks}\s*$.*?#bytes #repetitions"
        r"\s+t_min\[usec\]\s+t_max\[usec\]\s+t_avg\[usec\].*?\n",
        text,
        re.MULTILINE | re.DOTALL,
    )
    if not head:
        raise ImbFailed(f"IMB-MPI1 printed no table of {name} with {ranks} processes")
    rows = []
    for line in text[head.end() :].splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            break
        try:
            size, repetitions, least, greatest, mean = words[:5]
            times = (float(word) * 1e-6 for word in (least, greatest, mean))
            rows.append(Row(int(size), int(repetitions), *times))
        except ValueError:
            raise ImbFailed(
                f"IMB-MPI1's table of {name} holds a line that is not a row: {line.strip()!r}"
            ) from None
    return rows


def cells(
    operation: str, sizes: Sequence[int], rows: Sequence[Row], first: int
) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float64]]]:
    """An operation's table as cells of a result, and the samples that they name.

    Args:
        sizes: as asked for, in order.
        first: number of the first cell, for the names of the samples.

    Raises:
        ImbFailed: the rows are not those asked for.
    """
    expected = [size for size in sizes for _ in range(WARM_ROWS + ROWS)]
    if [row.bytes for row in rows] != expected:
        raise ImbFailed(
            f"IMB-MPI1 measured {len(rows)} rows of {operation} where {len(expected)} were asked "
            f"for, sizes {sorted(set(sizes))}; found {sorted({row.bytes for row in rows})}"
        )
    records: list[dict[str, Any]] = []
    held = {}
    per_size = WARM_ROWS + ROWS
    for number, size in enumerate(sizes):
        own = rows[number * per_size : (number + 1) * per_size]
        key = f"c{first + number:05d}"
        held[key] = np.array([[row.least, row.mean, row.greatest] for row in own])
        records.append(
            cell(operation, size)
            | {"samples": key, "warmup": WARM_ROWS, "group": 1, "emulated": False}
            | {"averaged": own[0].repetitions, "columns": list(COLUMNS)}
        )
    return records, held


def cell(operation: str, size: int) -> dict[str, Any]:
    """What names a cell of IMB's."""
    return {
        "operation": operation,
        "transport": TRANSPORT,
        "kind": "regular",
        "locality": "local",
        "bytes": size,
    }
