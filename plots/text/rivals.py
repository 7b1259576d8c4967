"""What a bench answers, as sentences and as a table: direct against its peers."""

import math
from collections.abc import Iterator
from typing import Any

from experiments.analysis.ratios import LEAST_CELLS
from experiments.analysis.reading import Campaign
from experiments.analysis.selection import rows
from experiments.analysis.statistics import FEWEST_BLOCKS, Verdict, short_of_claim
from experiments.bench.compare import against_peers, noise, other_build
from experiments.model.contender_names import CALLS, OTHER_BUILD, SHOWN
from experiments.model.lower_bound import BARRIER
from experiments.model.mpi_settings import DEFAULT
from experiments.model.quantities import NOTHING, counted, percent_text, ratio_text
from plots.figures.bench import ratios_name
from plots.layout.labels import by_operation, bytes_text, ranks_text
from plots.tables.table import Table
from plots.text.answers import Answer


def marks(bench: Campaign) -> list[str]:
    """What a reader must know before the first figure, a few words each."""
    floor = noise(bench.cells)
    if math.isnan(floor):
        return ["The noise floor is unknown"]
    return [f"Direct against itself strays {percent_text(floor)} at most"]


def answers(bench: Campaign) -> list[Answer]:
    """One for each operation, form of call and rank count that an MPI took part in."""
    best = rows(against_peers(bench.cells).query("best"))
    series = dict.fromkeys((row.operation, row.form, row.ranks) for row in best)
    order = [*CALLS]
    return [
        Answer(
            f"How much longer does the best MPI take than direct? {CALLS[each[0]]}, {each[1]} "
            f"calls, {ranks_text(each[2])}",
            " ".join(_sentences([r for r in best if (r.operation, r.form, r.ranks) == each])),
            figure="" if each[0] == BARRIER else ratios_name(each[2]),
        )
        for each in sorted(series, key=lambda each: order.index(each[0]))
    ]


def _sentences(best: list[Any]) -> Iterator[str]:
    near, far = (pick(best, key=lambda row: row.ratio) for pick in (min, max))
    yield f"It takes {_cell(near)}{f' to {_cell(far)}' if len(best) > 1 else ''}."
    differing = [row for row in best if row.verdict == Verdict.DIFFERS]
    if lost := [row for row in differing if row.ratio < 1]:
        yield f"It is faster than direct beyond the noise floor in {counted(len(lost), 'cell')}."
    if unknown := [bytes_text(row.bytes) for row in best if math.isnan(row.floor)]:
        yield (
            f"Direct was measured twice in fewer than {LEAST_CELLS} cells of a size like "
            f"{', '.join(dict.fromkeys(unknown))}, so the noise floor there is unknown and nothing "
            "differs: measure more sizes or operations."
        )
    if differing and (short := short_of_claim(min(row.blocks for row in differing))):
        yield short
    if any(math.isnan(row.low) for row in best):
        yield f"There is no interval below {FEWEST_BLOCKS} blocks."


def _cell(row: Any) -> str:
    """ "1.55 times as long (impi sm, 8 B)"."""
    setting = "" if row.setting == DEFAULT else f" {row.setting}"
    size = f", {bytes_text(row.bytes)}" if row.bytes else ""
    return f"{ratio_text(row.ratio)} times as long ({row.peer}{setting}{size})"


def table(bench: Campaign) -> Table:
    """Every peer's ratio in every cell; the CSV has the times too."""
    found = against_peers(bench.cells)
    labels = {OTHER_BUILD: other_build(bench)}
    peers = [peer for peer in SHOWN if peer in set(found["peer"])]
    cells = found.pivot(
        index=["operation", "form", "ranks", "bytes"], columns="peer", values="ratio"
    )[peers].sort_index(key=by_operation)
    return Table(
        name="peers",
        title="Peers over direct",
        caption=(
            "The peer's time over direct's, paired within each launch, the median over launches; "
            "an MPI in the setting that did best. Above 1 direct is faster."
        ),
        data=found,
        head=["operation", "calls", "ranks", "message per rank"]
        + [labels.get(peer, peer) for peer in peers],
        rows=[
            [CALLS[row[0]], row[1], str(row[2]), bytes_text(row[3]) if row[3] else NOTHING]
            + [ratio_text(ratio) for ratio in ratios]
            for row, *ratios in cells.itertuples()
        ],
        numeric=[False, False, True, True, *([True] * len(peers))],
        factors=4,
    )
