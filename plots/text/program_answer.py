"""What a container costs a user's program, in the sentences that an engineer would say aloud."""

import math

from experiments.analysis.program_cost import ArmCost, Cause, ProgramCost
from experiments.analysis.statistics import Verdict, bounds, verdict
from experiments.model.program import Timed
from experiments.model.quantities import (
    bound_text,
    counted,
    interval_text,
    ratio_text,
    seconds_text,
    share_text,
)

FAR_START = 0.02  # seconds by which a start must be longer to be named


def answers(cost: ProgramCost) -> list[tuple[str, list[str]]]:
    """For each environment beside the reference its name, and its sentences."""
    if not cost.costs:
        return []
    reference, *others = cost.costs
    return [
        (
            arm.arm,
            [
                *_total(arm, reference, cost),
                _parts(arm, reference),
                *_starts(arm, reference),
                *_calls(arm),
                *_why(arm, reference, cost),
            ],
        )
        for arm in others
    ]


def conditions(cost: ProgramCost) -> list[str]:
    """How far the answers can be trusted."""
    lines = []
    blocks = f"{counted(cost.blocks, 'block')}, one run of each environment in each"
    if cost.in_turns:
        turns = "all" if cost.in_turns == cost.blocks else str(cost.in_turns)
        lines.append(f"{blocks}; {turns} took turns, one at work while the others were stopped.")
    else:
        lines.append(f"{blocks}, one after the other: what else this machine did is in the ratios.")
    if cost.twin is None or math.isnan(cost.twin.low):
        lines.append("What is noise is not known: that takes 6 blocks.")
    else:
        lines.append(
            f"{cost.costs[0].arm} over itself: {bound_text(cost.twin.low, cost.twin.high)}. What "
            "is smaller is noise."
        )
    if cost.lines and cost.in_turns:
        lines.append(
            f"A cache line took {cost.lines.low:.0f} to {cost.lines.high:.0f} ns from one CPU to "
            "another and back in 90 % of the slices, in those of each environment the same to "
            f"within {100 * cost.lines.apart:.1f} %."
        )
    timed = "each run " + (
        "from where all ranks have left MPI_Init to the first that enters MPI_Finalize"
        if cost.timed is Timed.RANKS
        else "from its first instruction to its end, as no MPI was seen in it"
    )
    window = f"{cost.window:g} s of " if cost.window else ""
    lines.append(f"Timed: {window}{timed}. Intervals are of 95 %.")
    return lines


def differs(arm: ArmCost, cost: ProgramCost) -> bool:
    """Whether an environment's time is further from the reference's than equals are apart."""
    return verdict(arm.ratio.low, arm.ratio.high, cost.floor) is Verdict.DIFFERS


def _total(arm: ArmCost, reference: ArmCost, cost: ProgramCost) -> list[str]:
    least, most = bounds(arm.ratio.low, arm.ratio.high, cost.floor)
    what = "the same progress" if cost.window else "the program"
    if math.isnan(arm.ratio.low):
        first = (
            f"In {arm.arm} {what} takes {ratio_text(arm.ratio.value)} times as long as in "
            f"{reference.arm}; {counted(cost.blocks, 'block')} are too few for an interval."
        )
    elif differs(arm, cost):
        more = "longer" if arm.ratio.value > 1 else "less"
        first = (
            f"In {arm.arm} {what} takes {more} than in {reference.arm}: "
            f"{bound_text(arm.ratio.low, arm.ratio.high)}."
        )
    else:
        first = (
            f"In {arm.arm} {what} takes as long as in {reference.arm}, as far as this can tell: "
            f"{bound_text(least, most)}."
        )
    if arm.metric is None:
        return [first]
    return [
        first,
        f"By its own figure it has {ratio_text(arm.metric.value)} of that in {reference.arm} "
        f"({interval_text(arm.metric.low, arm.metric.high)}).",
    ]


def _parts(arm: ArmCost, reference: ArmCost) -> str:
    def split(one: ArmCost) -> str:
        work = max(0.0, one.seconds - one.mpi)
        return f"{seconds_text(work)} its own work and {seconds_text(one.mpi)} MPI"

    if not (arm.mpi or reference.mpi):
        there = seconds_text(reference.seconds)
        return f"It works for {seconds_text(arm.seconds)}; in {reference.arm} for {there}."
    return (
        f"Of its {seconds_text(arm.seconds)}, {split(arm)}; in {reference.arm} of "
        f"{seconds_text(reference.seconds)}, {split(reference)}."
    )


def _starts(arm: ArmCost, reference: ArmCost) -> list[str]:
    lines = []
    if abs(arm.started - reference.started) > FAR_START:
        lines.append(
            f"It starts in {seconds_text(arm.started)} instead of "
            f"{seconds_text(reference.started)}."
        )
    if abs(arm.readied - reference.readied) > FAR_START:
        lines.append(
            f"From there to the end of MPI_Init it takes {seconds_text(arm.readied)} instead of "
            f"{seconds_text(reference.readied)}."
        )
    return lines


def _calls(arm: ArmCost) -> list[str]:
    if not arm.slower:
        return []
    named = "; ".join(
        f"{call.name}: {ratio_text(call.ratio.value)} times as long "
        f"({interval_text(call.ratio.low, call.ratio.high)}), {share_text(call.share)} of the time"
        for call in arm.slower
    )
    return [f"Slower calls, those first that add most: {named}."]


def _why(arm: ArmCost, reference: ArmCost, cost: ProgramCost) -> list[str]:
    """Causes, those of the part that lost most first; differences that did not cost come last."""
    if not arm.causes:
        if differs(arm, cost) and arm.ratio.value > 1:
            return ["No cause is known: of what is looked for, nothing differs."]
        return []
    mpi = arm.mpi - reference.mpi
    work = (arm.seconds - arm.mpi) - (reference.seconds - reference.mpi)
    lost = "MPI" if mpi > work else "work"

    def is_last(cause: Cause) -> bool:
        return cause.part not in ("", lost)

    ordered = sorted(arm.causes, key=is_last)
    texts = "; ".join(cause.text for cause in ordered)
    if math.isnan(arm.ratio.low):
        return [f"What differs, whatever it costs: {texts}."]
    if not (differs(arm, cost) and arm.ratio.value > 1):
        return [f"What differs, without a cost that is seen beyond noise: {texts}."]
    likely = [cause for cause in ordered if not is_last(cause)]
    lines = [f"Possible cause: {cause.text}. What mends it: {cause.remedy}." for cause in likely]
    if others := "; ".join(cause.text for cause in ordered if is_last(cause)):
        lines.append(f"What differs as well: {others}.")
    return lines
