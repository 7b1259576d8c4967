"""Launch medians -> paired ratios of each peer, and which MPI is the best of each cell. Pure.

Where MPIs were tried in several settings, each is shown in the setting in which it did best in that
cell. The lowest of many medians is low by chance too: of N equals it is below their true ratio,
the further the larger N is. That counts against direct, never for it.
"""

import math
from typing import Any

import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.ratios import Floors, floors_of, jointly, paired_ratio, verdicts
from experiments.analysis.selection import json_records, json_value
from experiments.analysis.statistics import Verdict, median_interval
from experiments.model.contender_names import (
    AGAIN,
    DIRECT,
    MPI_ITSELF,
    OTHER_BUILD,
    OTHER_LABEL,
    PEERS,
)
from experiments.model.environment import MPIS

CELL = ["ranks", "operation", "bytes", "form"]
COLUMNS = (
    *CELL,
    *("peer", "flavour", "setting", "seconds", "low_s", "high_s"),
    *("ratio", "low", "high", "floor", "verdict", "blocks", "best"),
)
ANY = "any"
"""The MPI beside which the other build was measured: all of them count."""
SLOWER = 0.97
"""Ratio of the other build's time over direct's below which direct is noticeably slower."""


def own(cells: pd.DataFrame) -> pd.DataFrame:
    """Direct's own time in each cell, over all launches of all MPIs.

    Returns:
        CELL; seconds with low_s and high_s, the median and its interval; share, the median of the
        least time that the launch's copy bandwidth allows, over the time taken.
    """
    mine = cells[cells["transport"] == DIRECT]
    shares = (mine["bound_s"] / mine["median_s"]).groupby([mine[key] for key in CELL]).median()
    return _seconds(mine, CELL).merge(shares.rename("share").reset_index(), on=CELL)


def against_peers(cells: pd.DataFrame) -> pd.DataFrame:
    """Time of every peer over direct's in the same launch; above 1 direct is faster.

    Returns:
        COLUMNS, a row per cell and peer: the median ratio over blocks with its interval, the median
        time with its own (NaN below 6 blocks). floor: the smallest effect that may be claimed in
        the cell, NaN where it is unknown; verdict: what floor and interval let one say, a
        difference by an interval that holds for all rows at once, other settings included. An MPI
        is shown in the setting in which it did best; a peer that ran beside several MPIs (pickle,
        gloo, torch), beside the one with which it did best. Another build, which no MPI changes, is
        shown over all launches. `best` marks the MPI with the lowest ratio of each cell.
    """
    peers = pd.concat(
        [
            _over_direct(cells, transport)
            for transport in (OTHER_BUILD, MPI_ITSELF, *PEERS)
            if transport in set(cells["transport"])
        ]
        or [pd.DataFrame(columns=[*COLUMNS, "of_block"])],
        ignore_index=True,
    )
    peers = jointly(peers.rename(columns={"flavour": "mpi"})).rename(columns={"mpi": "flavour"})
    peers = peers.sort_values([*CELL, "peer", "ratio", "flavour", "setting"], kind="stable")
    peers = peers.drop_duplicates([*CELL, "peer"], ignore_index=True)
    mpis = peers[peers["peer"].isin(MPIS)]
    lowest = mpis.groupby(CELL, observed=True)["ratio"].idxmin()
    peers["best"] = peers.index.isin(lowest)
    noisy = floors(cells)
    where = zip(peers["flavour"], peers["bytes"], strict=True)
    peers["floor"] = [noisy.of(mpi, int(size)) for mpi, size in where]
    peers["verdict"] = verdicts(peers)
    return peers[list(COLUMNS)]


def _over_direct(cells: pd.DataFrame, transport: str) -> pd.DataFrame:
    """All arms in which a contender ran; of another build, all launches together."""
    pooled = transport == OTHER_BUILD
    keys = CELL if pooled else [*CELL, "mpi", "setting"]
    ratios = paired_ratio(cells, "transport", transport, DIRECT, pooled=pooled)
    rows = ratios.merge(_seconds(cells[cells["transport"] == transport], keys), on=keys)
    if pooled:
        rows = rows.assign(mpi=ANY, setting=ANY)
    peer = rows["mpi"] if transport == MPI_ITSELF else transport
    rows = rows.assign(peer=peer, best=False, floor=math.nan, verdict=Verdict.TOO_FEW)
    return rows.rename(columns={"mpi": "flavour"})[[*COLUMNS, "of_block"]]


def _seconds(cells: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The median over launches and its interval, for each combination of the keys."""
    rows = [
        dict(zip([*keys, "seconds", "low_s", "high_s"], (*values, *middle), strict=True))
        for values, medians in cells.groupby(keys, sort=True, observed=True)["median_s"]
        for middle in [median_interval(medians.to_numpy(dtype=float))]
    ]
    return pd.DataFrame(rows, columns=[*keys, "seconds", "low_s", "high_s"])


def slower_cells(compared: pd.DataFrame) -> pd.DataFrame:
    """The rows of against_peers() in which another build is surely faster by more than 3 %.

    Surely: the whole interval is below SLOWER and beyond the noise floor. None without an
    interval or a floor.
    """
    rows = compared[compared["peer"] == OTHER_BUILD]
    return rows[(rows["high"] < SLOWER) & (rows["verdict"] == Verdict.DIFFERS)]


def tried(cells: pd.DataFrame) -> int:
    """How many pairs of an MPI and a setting the best of a cell is chosen from, at most."""
    mpis = cells[cells["transport"] == MPI_ITSELF]
    return len(mpis[["mpi", "setting"]].drop_duplicates())


def floors(cells: pd.DataFrame) -> Floors:
    """How far direct strays from itself, paired within each launch, by MPI and band of sizes."""
    return floors_of(paired_ratio(cells, "transport", AGAIN, DIRECT))


def noise(cells: pd.DataFrame) -> float:
    """The largest noise floor of any band of sizes; NaN where none is known."""
    return floors(cells).largest


def other_build(bench: Campaign) -> str:
    """What another build of direct is called: "direct 88fb54c"; its revision or version."""
    return f"direct {bench.header.get(OTHER_LABEL, 'of another build')}"


def summary(bench: Campaign) -> dict[str, Any]:
    """Everything that is printed and the launch medians that it comes from, as JSON holds it."""
    launches = bench.cells.drop(columns="turns")
    return {
        "launches": json_records(
            launches.rename(columns={"mpi": "flavour", "transport": "contender"})
        ),
        "direct": json_records(own(bench.cells)),
        "peers": json_records(against_peers(bench.cells)),
        "noise": json_value(noise(bench.cells)),
        "notes": bench.warnings,
        "machine": bench.header["machine"],
        "question": bench.header["experiment"],
        "git": bench.header.get("git", "unknown"),
    }
