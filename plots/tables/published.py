"""What the paper publishes, and its table of speed-ups with this campaign's figures beside.

Woo, Choi, Lee, Appl. Sci. 2020, 10(19), 6717. Of its figures we hold the two that its abstract and
text name; a percentage there is a ratio of times: 445 % is read as 4.45 times as fast.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.campaign import BASELINE, Campaign
from experiments.analysis.selection import at, in_order, rows, usual
from experiments.model.arms import arm_key
from experiments.model.quantities import NOTHING, bytes_text, ratio_text
from experiments.results import recorded
from plots.layout.labels import OPERATIONS, alerts, arm_name, by_mpi, operation_name, setting
from plots.tables.table import Table

BCAST_16 = 4.45
MOST = 4.87
PAPER = "Woo, Choi and Lee, Appl. Sci. 2020, 10(19), 6717"
CELLS: Mapping[tuple[str, int], float] = {("bcast", 16): BCAST_16}
"""By operation and ranks, what the paper publishes; MOST is the most of all its cells."""
READING = "445 % is read as 4.45 times as fast"
NAME = "paper"


def comparable(frame: pd.DataFrame) -> bool:
    """Whether the paper's figures have a place beside these: times of a real machine."""
    return not recorded.machines(frame[recorded.COLUMN])


def of_one_kind(campaign: Campaign) -> pd.DataFrame:
    """Speed-ups of one kind, hbw where it was measured, of ranks and buffers in their usual place;
    none where HBM was not measured."""
    frame = campaign.speedups
    if frame.empty:
        return frame
    return usual(frame[frame["kind"] == in_order(frame["kind"], ("hbw",))[0]])


def largest(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the largest size."""
    return pd.DataFrame(frame[frame["bytes"] == frame["bytes"].max()])


def comparison(campaign: Campaign) -> list[Table]:
    """The paper's table, operation by ranks, for each MPI; none where HBM was not measured."""
    frame = of_one_kind(campaign)
    if frame.empty:
        return []
    return [_table(campaign, *part) for part in by_mpi(largest(frame))]


def _table(campaign: Campaign, suffix: str, title_end: str, frame: pd.DataFrame) -> Table:
    """One row per operation and rank count that were timed, a column per transport and arm, the
    paper's last; a dash where no block has a pair of both kinds."""
    columns = [
        (transport, arm)
        for transport in ("mpi", "direct")  # the paper's calls, and ours
        if transport in set(frame["transport"])
        for arm in sorted(set(frame["arm"]), key=arm_key)
    ]
    cells = {(c.operation, int(c.ranks), c.transport, c.arm): c for c in rows(frame)}
    timed = campaign.times[campaign.times["mpi"] == frame["mpi"].iloc[0]]
    counts = sorted({int(count) for count in timed["ranks"]})
    shown = list(itertools.product(in_order(timed["operation"], OPERATIONS), counts))
    body = [
        [operation_name(operation), str(ranks)]
        + [_percent(cells.get((operation, ranks, *column))) for column in columns]
        + [_published(CELLS.get((operation, ranks)))]
        for operation, ranks in shown
    ]
    most = [_most(frame, *column) for column in columns]
    kind, size = str(frame["kind"].iloc[0]), int(frame["bytes"].iloc[0])
    sentences = [
        *alerts(frame),
        f"Time with buffers in {BASELINE} memory over time in {kind}, in per cent: {READING}, and "
        f"100 % is no difference. {bytes_text(size)} per rank, {setting(frame)}; "
        "median over paired blocks and its 95 % interval.",
        f"Published: {PAPER}, measured on Knights Landing with MCDRAM; {NOTHING} where we hold no "
        "figure of it. Its calls are those of transport mpi.",
    ]
    if not comparable(frame):
        sentences.append("An emulated machine's times mean nothing beside them.")
    data = frame[["operation", "ranks", "transport", "arm", "ratio", "low", "high", "blocks"]]
    keys = zip(frame["operation"], frame["ranks"], strict=True)
    return Table(
        f"{NAME}{suffix}",
        f"The paper's table: speed-up of {kind}{title_end}",
        " ".join(sentences),
        data.assign(
            published=[CELLS.get(key, np.nan) for key in keys],
            emulated=frame["emulated"],
            **{recorded.COLUMN: frame[recorded.COLUMN]},
        ),
        head=["operation", "ranks", *(f"{t}, {arm_name(arm)}" for t, arm in columns), "published"],
        rows=[*body, ["most", NOTHING, *most, _published(MOST)]],
        numeric=[False, True, *(True for _ in columns), True],
        factors=2,
    )


def _percent(cell: Any) -> str:
    """ "318 % (305 to 331)"; a dash for a cell without a pair."""
    if cell is None:
        return NOTHING
    known = np.isfinite([cell.low, cell.high]).all()
    interval = f" ({100 * cell.low:.0f} to {100 * cell.high:.0f})" if known else ""
    return f"{100 * cell.ratio:.0f} %{interval}"


def _published(ratio: float | None) -> str:
    return NOTHING if ratio is None else f"{100 * ratio:.0f} % ({ratio_text(ratio)} times)"


def _most(frame: pd.DataFrame, transport: str, arm: str) -> str:
    mine = at(frame, transport=transport, arm=arm)
    return f"{100 * mine['ratio'].max():.0f} %" if len(mine) else NOTHING
