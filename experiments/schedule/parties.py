"""Which launches of a block run at the same time. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from experiments.model.arms import HOST
from experiments.model.launch import Block, Launch
from experiments.schedule.blocks import reference

Fits = Callable[[Sequence[Launch]], bool]
"""Whether there is memory for the buffers of launches at once."""


def parties(block: Block, waiting: Sequence[Launch], fits: Fits) -> list[list[Launch]]:
    """The launches that take turns together; the others one by one.

    Where the buffers of all do not fit at once, or the reference arm is finished already, each arm
    takes turns with the reference arm alone, which is launched again for each: a ratio over it
    stays one of turns.

    Args:
        waiting: those of the block's launches that are not finished.
    """
    company = [launch for launch in waiting if launch.takes_turns]
    host = reference(block)
    complete = host is None or host in company
    if complete and len(company) > 1 and fits(company):
        together = [company]
    else:
        together = [pair for pair in _pairs(host, company) if fits(pair)]
    names = {launch.name for launch in chain(*together)}
    return [*together, *([launch] for launch in waiting if launch.name not in names)]


def _pairs(host: Launch | None, company: Sequence[Launch]) -> list[list[Launch]]:
    """Each arm with the reference arm, which is launched again for all but its first pair."""
    if host is None:
        return []
    others = [launch for launch in company if launch.arm != HOST]
    pairs = [[replace(host, beside=other.arm), other] for other in others]
    if pairs and host in company:
        pairs[0][0] = host
    return pairs
