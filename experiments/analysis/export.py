"""A campaign's numbers in formats that others read: OSU's tables, CSV, Parquet, OpenMetrics.

CSV and Parquet hold launch medians, a row per launch and cell, or raw samples, a row per
iteration and rank; seconds and bytes, all digits, so that reading gives the same back. The tables
of the OSU Micro-Benchmarks hold what those print with `--full`. openmetrics.py has the medians and
paired ratios that a monitoring system takes.
"""

import importlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.openmetrics import openmetrics
from experiments.analysis.statistics import FACTORS
from experiments.model.contender_names import PLAIN
from experiments.model.errors import ExperimentsError
from experiments.model.lower_bound import COPY
from experiments.processes.files import whole_file
from experiments.results import recorded, store
from experiments.results.result import CellResult, Result

FORMATS = ("osu", "csv", "parquet", "openmetrics")
LINES = {"osu": "OSU's tables have", "openmetrics": "OpenMetrics has"}
"""Formats that are lines of text without a place for raw samples, as subjects of a sentence."""
NAMES = ("block", "arm", *FACTORS, "group", recorded.COLUMN)
"""What names a sample's cell and launch."""
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What text begins with that a spreadsheet takes for a formula."""
NO_RANK = -1
"""The rank of a value over all ranks."""
NO_TURN = -1
"""The turn of a warm-up sample, and of every sample of a launch that took no turns."""

OSU_NAMES = {
    "bcast": "Broadcast",
    "gather": "Gather",
    "scatter": "Scatter",
    "reduce": "Reduce",
    "allreduce": "Allreduce",
    "allgather": "Allgather",
    "reduce_scatter": "Reduce_scatter",
    "alltoall": "All-to-All Personalized Exchange",
}
"""Our operations as the titles of OSU's programs spell them."""
DATATYPES = {
    "float32": "MPI_FLOAT",
    "float64": "MPI_DOUBLE",
    "int32": "MPI_INT",
    "int64": "MPI_LONG",
}
HEAD = "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"


class CannotExport(ExperimentsError):
    """A format that cannot be written here."""


def export(campaign: Campaign, form: str, out: Path | None, raw: bool = False) -> None:
    """Write one file, whole or not at all, or text to standard output.

    Args:
        form: one of FORMATS.
        out: the file; None for standard output.
        raw: every sample instead of medians; of CSV and Parquet.

    Raises:
        CannotExport: Parquet without pyarrow or without a file, or raw samples in another format
            than CSV and Parquet.
    """
    if raw and form in LINES:
        raise CannotExport(
            f"{LINES[form]} no place for raw samples; export them with --format csv or parquet"
        )
    if out is None:
        if form == "parquet":
            raise CannotExport("Parquet is not text; name a file for it with --out")
        _write_text(campaign, form, sys.stdout, raw)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(out) as temporary:
        if form == "parquet":
            _write_parquet(_parts(campaign, raw), campaign, temporary)
        else:
            file = io.TextIOWrapper(temporary, encoding="utf-8", newline="")
            _write_text(campaign, form, file, raw)
            file.detach()  # flushes


def _parts(campaign: Campaign, raw: bool) -> Iterator[pd.DataFrame]:
    """All columns of the cells but the medians of turns, which are no single number."""
    return _samples(campaign) if raw else iter([campaign.cells.drop(columns="turns")])


def _write_text(campaign: Campaign, form: str, file: TextIO, raw: bool) -> None:
    if form in LINES:
        file.writelines(osu(campaign) if form == "osu" else openmetrics(campaign))
        return
    for number, part in enumerate(_parts(campaign, raw)):
        file.write(csv(part, header=number == 0))


def csv(frame: pd.DataFrame, header: bool = True) -> str:
    """A frame as CSV, with all digits.

    Text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay.
    """
    text = frame.select_dtypes(include=["object", "string"])
    for name, column in text.items():
        formulas = {
            value: f"'{value}"
            for value in column.unique()
            if isinstance(value, str) and value.startswith(FORMULAS)
        }
        if formulas:
            frame = frame.assign(**{str(name): column.replace(formulas)})
    return str(frame.to_csv(index=False, header=header, lineterminator="\n"))


def _write_parquet(parts: Iterator[pd.DataFrame], campaign: Campaign, out: BinaryIO) -> None:
    """One row group per part; the schema's metadata holds campaign.json."""
    try:
        arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    except ImportError as error:
        raise CannotExport(
            "Parquet needs pyarrow, which is not installed; add it: "
            ".venv/bin/pip install --constraint constraints.txt --group parquet, "
            "or export with --format csv"
        ) from error
    writer = None
    try:
        for part in parts:
            table = arrow.Table.from_pandas(part, preserve_index=False)
            metadata = {**(table.schema.metadata or {}), b"hbmcomm": json.dumps(campaign.header)}
            table = table.replace_schema_metadata(metadata)
            writer = writer or parquet.ParquetWriter(out, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _samples(campaign: Campaign) -> Iterator[pd.DataFrame]:
    """Every sample of one launch after the other: NAMES, iteration, warmup, rank, begin_s, seconds.

    `iteration` counts from 0 with the warm-up, `turn` from 0 (NO_TURN: none). `over_ranks` is ""
    for a rank's own time; of an external program that keeps those to itself it says what the value
    is over all ranks ("min", "mean", "max"), and `rank` is NO_RANK. `begin_s` is when the rank
    began, in seconds from the earliest begin of the turn; NaN where that was not stored.
    """
    for launch in campaign.launches:
        parts = [
            _long(names, cell, seconds, begins)
            for names, cell, seconds, begins in _measured(campaign.folder, launch)
            if cell.operation != COPY
        ]
        if parts:
            yield pd.concat(parts, ignore_index=True)


def _long(
    names: dict[str, Any], cell: CellResult, seconds: Any, begins: Any = None
) -> pd.DataFrame:
    iterations, columns = seconds.shape
    over = cell.columns or [""] * columns
    ranks = [NO_RANK if what else number for number, what in enumerate(over)]
    iteration = np.repeat(np.arange(iterations), columns)
    timed, length = iteration - cell.warmup, cell.turn
    turn = np.where((timed >= 0) & (length > 0), timed // max(length, 1), NO_TURN)
    return pd.DataFrame(
        {name: [names[name]] * seconds.size for name in NAMES}
        | {"iteration": iteration, "warmup": timed < 0, "turn": turn}
        | {"rank": np.tile(ranks, iterations), "over_ranks": np.tile(over, iterations)}
        | {"begin_s": np.nan if begins is None else begins.ravel(), "seconds": seconds.ravel()}
    )


def _measured(
    folder: Path, launch: Result
) -> Iterator[tuple[dict[str, Any], CellResult, Any, Any]]:
    """Each measured cell of a launch: what names it, the cell, its samples and their begins."""
    samples = store.read_samples(folder / "launches" / f"{launch.name}.npz")
    for cell in launch.measured:
        values = launch.factors(cell)
        begins = samples.get(cell.begins)
        yield {key: values[key] for key in NAMES}, cell, samples[cell.samples], begins


def osu(campaign: Campaign) -> Iterator[str]:
    """OSU's tables as text, one for each operation of each arm, transport, MPI and so on.

    As there, a rank's latency is the mean over its iterations, and the columns are the mean, the
    least and the greatest of those over the ranks; iterations of all launches count alike. Our own
    tables hold medians instead, since a mean follows its outliers.
    """
    columns = [name for name in ("arm", *FACTORS) if name != "bytes"]
    kept: dict[tuple[Any, ...], dict[int, list[Any]]] = {}
    mpis: dict[str, str] = {}
    for launch in campaign.launches:
        mpis.setdefault(launch.launch.mpi, launch.facts.versions.get("mpi", ""))
        for names, cell, seconds, _ in _measured(campaign.folder, launch):
            if cell.operation in OSU_NAMES:
                key = (*(names[name] for name in columns), cell.columns)
                by_size = kept.setdefault(key, {})
                by_size.setdefault(names["bytes"], []).append(seconds[cell.warmup :])
    warning = recorded.meaning(launch.machine for launch in campaign.launches)
    warning = f"# {warning}\n" if warning else ""
    for (*levels, over), by_size in sorted(kept.items()):
        names = dict(zip(columns, levels, strict=True))
        yield _osu_head(names, mpis[names["mpi"]], max(map(len, by_size.values())), warning)
        for size, samples in sorted(by_size.items()):
            own = np.concatenate(samples).mean(axis=0) * 1e6
            mean = dict(zip(over, own, strict=False)).get("mean", own.mean())
            count = sum(map(len, samples))
            yield f"{size:<10d}{mean:18.2f}{own.min():18.2f}{own.max():18.2f}{count:12d}\n"


def _osu_head(names: dict[str, Any], mpi: str, launches: int, warning: str) -> str:
    parts = [f"arm {names['arm']}", f"transport {names['transport']}", f"memory {names['kind']}"]
    parts += [f"{names['form']} calls"] if names["form"] != PLAIN else []
    parts += ["emulated"] if names["emulated"] else []
    parts += [mpi or names["mpi"], f"{names['ranks']} ranks", names["binding"], names["locality"]]
    parts += [names["cadence"], f"cache {names['cache']}", f"{launches} launches"]
    return (
        f"\n# OSU MPI {OSU_NAMES[names['operation']]} Latency Test (measured by hbmcomm)\n"
        f"# {', '.join(parts)}\n"
        f"{warning}"
        f"# Datatype: {DATATYPES[names['dtype']]}.\n"
        f"{HEAD}\n"
    )
