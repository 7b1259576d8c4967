"""Sentences about operations between hosts: their time over what the links allow."""

from experiments.analysis.findings import Findings
from experiments.analysis.selection import at, in_order, of_first_arm, rows
from experiments.model.quantities import ratio_text
from plots.layout.labels import bytes_text, in_words, mpi_name, ratio_and_interval
from plots.layout.style import TRANSPORTS

LONG = 2**20
"""Bytes from which the rate of a link counts, not its latency."""


def sentences(found: Findings) -> dict[str, str]:
    """By transport, of the first arm; of messages of LONG bytes and more, where there are some."""
    every = of_first_arm(found.wires)
    said = {}
    for transport in in_order(every["transport"], TRANSPORTS):
        mine = at(every, transport=transport)
        long = mine[mine["bytes"] >= LONG]
        which, shown = ("", mine) if long.empty else (f" from {bytes_text(LONG)} on", long)
        by_time = rows(shown.sort_values("over"))
        least, most = by_time[0], by_time[-1]
        places = [
            in_words(cell, "operation", "bytes", "mpi", "ranks", "binding")
            for cell in (least, most)
        ]
        said[transport] = (
            f"{transport} takes {ratio_text(least.over)} to {ratio_text(most.over)} times as long "
            f"as its bytes on the busiest link{which}; least in {places[0]}, most in {places[1]}. "
            f"The links carry {ratio_text(shown['carried'].min())} to "
            f"{ratio_text(shown['carried'].max())} times the least bytes."
        )
    return said


def best_flat(found: Findings) -> tuple[str, ...]:
    """By operation, size, ranks and their placement: the fastest but ours, with any MPI."""
    every = of_first_arm(found.wires)
    flat = every[every["transport"] != found.ours]
    key = ["operation", "bytes", "ranks", "binding"]
    ratios = {
        (row.mpi, row.transport, row.operation, row.bytes, row.ranks, row.binding): row
        for row in rows(found.transports)
    }
    said = []
    for levels, mine in flat.groupby(key, sort=True, observed=True):
        best = min(rows(mine), key=lambda cell: cell.over)
        if row := ratios.get((best.mpi, best.transport, *levels)):
            said.append(
                f"{in_words(best, *key)}: {best.transport} of {mpi_name(best.mpi)} is the fastest, "
                f"and takes {ratio_and_interval(row)} times as long as {found.ours} with that MPI."
            )
    return tuple(said)
