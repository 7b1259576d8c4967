"""What is shown of a campaign, in the order of its page: figures, answers and tables.

Each is made in the file of its figure.
"""

from collections.abc import Container, Sequence
from dataclasses import replace

from experiments.analysis.campaign import Campaign
from experiments.model.experiment import MPIS_ARE_ARMS
from experiments.results.store import ResultsError
from plots.figures import (
    baselines,
    bench,
    chain,
    container,
    drift,
    placement,
    placement_map,
    speedup,
    systems,
    times,
    wires,
    workloads,
)
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.style import style
from plots.tables.listing import listed
from plots.tables.published import comparison
from plots.tables.table import Table
from plots.text.claims import Answer, absent

TIMED = (
    workloads.FIGURE,
    systems.OF_COLLECTIVES,
    times.FIGURE,
    speedup.FIGURE,
    placement.FIGURE,
    systems.FIGURE,
    wires.FIGURE,
    baselines.FIGURE,
)
COSTS = (chain.FIGURE, container.FIGURE, drift.FIGURE)
TOPICS = [figure.name for figure in (*TIMED, placement_map.FIGURE, *COSTS)]

ANSWERING = (
    *(speedup, chain, container),
    *(workloads, wires, systems, placement, placement_map, baselines),
)
"""Memory and containers first, which campaigns are made for."""

LISTINGS = (
    times.TABLE,
    workloads.TABLE,
    systems.TABLE,
    speedup.TABLE,
    placement.TABLE,
    container.TABLE,
    container.OVER_SIZES,
    container.ISOLATION,
    chain.TABLE,
    container.TAILS,
    drift.TABLE,
    baselines.PYTHON,
    baselines.TABLE,
    placement_map.TABLE,
)


def is_bench(campaign: Campaign) -> bool:
    """Whether MPIs are the arms."""
    return campaign.experiment.launches.arms == MPIS_ARE_ARMS


def drawings(
    campaign: Campaign, *, printed: bool = False, topics: Container[str] = TOPICS
) -> Sequence[Drawing | Skipped]:
    """Every figure, in the paper's order; those that the campaign cannot fill say why.

    Of an emulated machine the map comes first, which alone is real; the words of all say so.

    Args:
        topics: the figures that are wanted of those in TOPICS.

    Raises:
        ResultsError: it holds thresholds, each value a contender, which no figure knows.
    """
    if campaign.experiment.factors.thresholds:
        raise ResultsError(
            f"{campaign.folder} holds thresholds, of which there are no figures; print them: "
            f"./inv bench --results {campaign.folder}"
        )
    warning = campaign.machine
    order = (placement_map.FIGURE, *TIMED) if warning else (*TIMED, placement_map.FIGURE)
    with style(printed=printed):
        if is_bench(campaign):
            return bench.draw(campaign)
        drawn = [
            item
            for figure in (*order, *COSTS)
            if figure.name in topics
            for item in figure(campaign)
        ]
    if not warning:
        return drawn
    return [
        replace(
            item, caption=f"{warning} {item.caption}", description=f"{warning} {item.description}"
        )
        if isinstance(item, Drawing)
        else item
        for item in drawn
    ]


def answers(campaign: Campaign) -> list[Answer]:
    """The campaign's answers; what has none comes last.

    On an emulated machine no question about time is asked, only where ranks and pages were.
    """
    if is_bench(campaign):
        return bench.answers(campaign)
    if campaign.machine:
        missing = (absent(f"What of {level}?", level, campaign) for level in campaign.unmeasured)
        return [*placement_map.answers(campaign), _no_time(campaign), *missing]
    every = [answer for figure in ANSWERING for answer in figure.answers(campaign)]
    return sorted(every, key=lambda answer: answer.sentence.startswith("Not measured"))


def _no_time(campaign: Campaign) -> Answer:
    return Answer(
        "How fast is it?",
        f"Not answered, and not to be answered here. {campaign.machine} QEMU shows nodes, "
        "distances and bandwidths as the machine's description has them, and no node is faster "
        "than another; ratios of such times say nothing about high-bandwidth memory or containers.",
    )


def tables(campaign: Campaign) -> list[Table]:
    """Every table that this campaign fills."""
    if is_bench(campaign):
        return [bench.table(campaign)]
    every = (table for listing in LISTINGS for table in listed(listing, campaign))
    return [*comparison(campaign), *every]
