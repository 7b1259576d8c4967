"""Which launches of a block run at the same time. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from experiments.model.arms import HOST
from experiments.model.launch import Block, Launch

Fits = Callable[[Sequence[Launch]], bool]
"""Whether there is memory for the buffers of launches at once."""


def parties(block: Block, waiting: Sequence[Launch], fits: Fits) -> list[list[Launch]]:
    """Those that take turns together; the others one by one.

    Where the buffers of all do not fit at once, or the reference arm is finished already, each arm
    takes turns with the reference arm alone, which is launched again for each: a ratio over it
    stays one of turns.

    Args:
        waiting: those of the block's launches that are not finished.
    """
    company = [launch for launch in waiting if launch.takes_turns]
    reference = [launch for launch in block.launches if launch.arm == HOST and launch.takes_turns]
    complete = all(launch in company for launch in reference)
    if complete and (len(company) < 2 or fits(company)):
        together = [company] if len(company) > 1 else []
    else:
        together = [pair for pair in _pairs(reference, company) if fits(pair)]
    names = {launch.name for party in together for launch in party}
    return [*together, *([launch] for launch in waiting if launch.name not in names)]


def _pairs(reference: Sequence[Launch], company: Sequence[Launch]) -> list[list[Launch]]:
    """Each arm with the reference arm; none where the block has no reference arm."""
    found: list[list[Launch]] = []
    for one in reference:
        for other in (each for each in company if each.arm != HOST):
            first = one in company and not found
            found.append([one if first else replace(one, beside=other.arm), other])
    return found
