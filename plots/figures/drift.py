"""The machine's pace over the campaign: how long each launch took beside others of its arm."""

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from experiments.analysis.campaign import Campaign
from experiments.analysis.ratios import company_ratio
from experiments.analysis.selection import at, in_order
from experiments.analysis.statistics import FACTORS
from experiments.model.arms import HOST
from experiments.model.quantities import counted, percent_text, ratio_text
from plots.layout.figure_layout import Drawing, Figure, sheet
from plots.layout.labels import MPIS, mpi_name
from plots.layout.marks import even_ticks, mark_handle, ratio_scale
from plots.layout.style import MUTED, party
from plots.tables.listing import Listing

NAME = "drift"
TITLE = "The machine's pace, launch by launch"


def paces(campaign: Campaign) -> pd.DataFrame:
    """A row per launch that stored when it began: arm, mpi, block, began_s and pace.

    began_s is seconds after the first launch. pace is the median over the launch's cells of its
    time over the median time of the same cell in all launches of its arm: 1.1 is a launch that took
    10 % longer than its arm usually does.
    """
    began = {
        (launch.launch.block, launch.launch.arm, " ".join(launch.company)): float(launch.began)
        for launch in campaign.launches
        if launch.began is not None
    }
    cells = campaign.cells
    usual = cells.groupby(["arm", *FACTORS], observed=True)["median_s"].transform("median")
    company = cells["company"].astype(object).fillna("")  # no file of a campaign may have one
    launches = (
        cells.assign(pace=cells["median_s"] / usual, company=company)
        .groupby(["block", "arm", "company", "mpi"], observed=True)["pace"]
        .median()
        .reset_index()
    )
    keys = zip(launches["block"], launches["arm"], launches["company"], strict=True)
    launches["began_s"] = [began.get(key, np.nan) for key in keys]
    launches = launches.dropna(subset=["began_s"]).sort_values(
        ["began_s", "arm"], ignore_index=True
    )
    launches["began_s"] -= launches["began_s"].min()
    return launches[["began_s", "arm", "mpi", "block", "pace"]]


def needs(campaign: Campaign) -> str:
    """A campaign needs several blocks of a real machine, and when their launches began."""
    if campaign.machine or paces(campaign)["block"].nunique() < 2:
        return "it needs two blocks or more, on a real machine"
    return ""


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing: a mark per launch, a line per block."""
    frame = paces(campaign)
    span = max(1.06, 1.05 * float(max(frame["pace"].max(), 1 / frame["pace"].min())))
    mpis = in_order(frame["mpi"], MPIS)
    page = sheet(
        TITLE,
        "a mark per launch",
        panel_height=1.3,
        legend=[mark_handle(party(mpi), mpi_name(mpi), linestyle="none") for mpi in mpis],
        legend_columns=3,
        notes=[
            "Median over cells of a launch's time over the usual one of its arm. Marks of a block "
            "that move together are the machine's doing, and cancel in ratios.",
        ],
        left=0.55,
    )
    (axes,) = page.flat()
    axes.axhline(1, color=MUTED, linewidth=0.8, zorder=1)
    for mpi in mpis:
        for _, block in at(frame, mpi=mpi).groupby("block"):
            axes.plot(
                block["began_s"],
                block["pace"],
                color=party(mpi).colour,
                marker=party(mpi).marker,
                markersize=2.6,
                linewidth=0.7,
            )
    ratio_scale(axes, 1 / span, span, even_ticks(span))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda second, _: f"{second:g} s"))
    axes.set_xlabel("since the first launch began")
    caption = f"{_caption(frame)}{_company(company_ratio(campaign.cells, campaign.alone))}"
    return [Drawing(NAME, "", TITLE, caption, _description(frame), page, detail=True)]


def _caption(frame: pd.DataFrame) -> str:
    blocks = frame.groupby("block")["pace"]
    within = float((blocks.max() / blocks.min() - 1).median())
    return (
        f"Launches took {ratio_text(frame['pace'].min())} to {ratio_text(frame['pace'].max())} "
        "times as long as usual for their arm; between the arms of a block the pace differed by "
        f"{percent_text(within)} in the median block. Ratios are taken turn by turn within a "
        "block, so slower changes of the machine do not affect them."
    )


def _company(frame: pd.DataFrame) -> str:
    """What neighbours that sleep cost, after a space; "" where no launch ran alone."""
    if frame.empty:
        return ""
    low, middle, high = (
        ratio_text(float(frame["ratio"].quantile(share))) for share in (0.1, 0.5, 0.9)
    )
    return (
        f" Beside arms that slept, the host took {middle} times as long as alone: the median of "
        f"{counted(len(frame), 'cell')} of one launch each, 80 % of them from {low} to {high}."
    )


def _description(frame: pd.DataFrame) -> str:
    paces = ", ".join(map(ratio_text, frame.groupby("block")["pace"].median()))
    arms = len(set(frame["arm"]))
    return f"Line chart of {len(frame)} launches of {arms} arms. Median pace by block: {paces}."


TABLE = Listing(
    "twins",
    f"The {HOST} against itself",
    f"Time of the repeated {HOST} arm over the first: no container causes this. {{floors}}",
    "twins",
    detail=True,
)
FIGURE = Figure(NAME, TITLE, draw, needs)
