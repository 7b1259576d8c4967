"""The thresholds that are proposed as a table for a terminal, how to read it, and shell lines."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from experiments.analysis.statistics import FEWEST_BLOCKS
from experiments.analysis.thresholds import Proposal, Tuned
from experiments.model.contender_names import CALLS
from experiments.model.quantities import amount_text, percent_text, ratio_text, size_text
from experiments.model.trials import NEVER

UNCHANGED = "nothing to change: no other value is certainly faster on this machine"


def render(tuned: Tuned) -> RenderableType:
    """The table, how to read it, and the shell lines."""
    (ranks,) = tuned.campaign.experiment.launches.ranks
    table = Table(title=f"Thresholds of transport direct, {ranks} ranks", title_justify="left")
    table.add_column("variable", no_wrap=True)
    table.add_column("now", justify="right", no_wrap=True)
    table.add_column("proposed", justify="right", no_wrap=True)
    table.add_column("gain, or why it stays")
    for proposal in tuned.proposals:
        proposed = (
            Text(_amount(proposal.proposed, proposal.unit), "bold green")
            if proposal.changes
            else ""
        )
        table.add_row(
            proposal.variable, _amount(proposal.now, proposal.unit), proposed, _reason(proposal)
        )
    return Group(table, *(Text(line) for line in _legend(tuned)))


def _reason(proposal: Proposal) -> str:
    if proposal.gain is None or proposal.cell is None:
        return proposal.why
    gain, cell = proposal.gain, proposal.cell
    where = CALLS[cell.operation] + (f" of {size_text(cell.bytes)}" if cell.bytes else "")
    return (
        f"{ratio_text(gain.value)}× as fast ({ratio_text(gain.low)} to {ratio_text(gain.high)}) "
        f"in {where}"
    )


def _legend(tuned: Tuned) -> Iterator[str]:
    yield (
        "A gain is that of the operation and size that gain most: the median over launches of "
        "ratios that are paired within a turn, with its exact 95 % interval. The same way strays "
        f"{percent_text(tuned.noise)} from itself; all operations of a size together must gain "
        "more. Each threshold was measured with all others as they are now."
    )
    for note in tuned.notes:
        yield f"Note: {note}."
    yield ""
    launches = min(
        (len(comparison.ratios) for every in tuned.compared.values() for comparison in every),
        default=0,
    )
    if tuned.exports:
        yield "Put it into force, in the environment of rank 0:"
        yield from tuned.exports
    elif launches < FEWEST_BLOCKS:
        yield f"nothing can be proposed yet: that takes {FEWEST_BLOCKS} launches"
    else:
        yield UNCHANGED


def _amount(number: int, unit: str) -> str:
    """ "never" for bytes that no message has."""
    return "never" if unit == "bytes" and number >= NEVER else amount_text(number, unit)
