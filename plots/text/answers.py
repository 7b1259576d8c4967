"""One sentence per question: what may be claimed, and what may not. Draws nothing.

An effect is claimed only where its whole interval is beyond the noise floor of its MPI and size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.analysis.findings import (
    BASELINE,
    BASELINES,
    OURS,
    Findings,
    absent_containers,
)
from experiments.analysis.reading import OVER_PRIVATE
from experiments.analysis.selection import (
    at,
    emulated,
    in_order,
    of_first_arm,
    of_real_memory,
    rows,
    usual,
)
from experiments.analysis.statistics import Verdict
from experiments.model.arms import HOST, USERLAND
from experiments.model.contender_names import FORMS, GLOO, TORCH
from experiments.model.experiment import KINDS
from experiments.model.quantities import percent_text, ratio_text
from experiments.model.workloads import CONTENDERS
from experiments.programs.imb import DIFFERENCES
from plots.figures import baselines, chain, container, placement, speedup, systems, times, workloads
from plots.figures.map import NAME as MAP
from plots.figures.wires import NAME as NEAR
from plots.layout import confounder_text, data_path_text, placement_text
from plots.layout.labels import (
    OPERATIONS,
    arm_name,
    in_words,
    operation_name,
    transport_name,
)
from plots.layout.style import TRANSPORTS
from plots.tables.published import of_one_kind
from plots.text import cost, wire

CELL = ("operation", "transport", "bytes", "ranks")
"""What names a cell in a sentence."""


@dataclass(frozen=True)
class Answer:
    """A question, one sentence (or two) that answers it, and the evidence.

    Attributes:
        figure: topic of the drawings that show it (figure_layout.Drawing), or "".
        points: a sentence each.
    """

    question: str
    sentence: str
    grid: cost.Grid | None = None
    points: tuple[str, ...] = ()
    figure: str = ""


def answers(found: Findings) -> list[Answer]:
    """The campaign's answers; what has none comes last.

    On an emulated machine no question about time is asked, only where ranks and pages were.
    """
    if found.machine:
        missing = [_absent(f"What of {level}?", level, found) for level in found.unmeasured]
        return [*_where(found), Answer("How fast is it?", _no_time(found)), *missing]
    return sorted(_asked(found), key=lambda each: each.sentence.startswith("Not measured"))


def _absent(question: str, level: str, found: Findings) -> Answer:
    return Answer(question, f"Not measured. {level}: {found.unmeasured[level]}")


def _no_time(found: Findings) -> str:
    return (
        f"Not answered, and not to be answered here. {found.machine} QEMU shows nodes, distances "
        "and bandwidths as the machine's description has them, and no node is faster than another; "
        "ratios of such times say nothing about high-bandwidth memory or containers."
    )


def _asked(found: Findings) -> Iterator[Answer]:
    """The answers of a real machine: memory and containers first, which campaigns are made for."""
    memory = "How much faster are collectives in high-bandwidth memory?"
    if sentence := _memory(found):
        yield Answer(memory, sentence, figure=speedup.NAME)
    yield from _containers(found)
    yield from _workloads(found)
    for transport, sentence in wire.sentences(found).items():
        question = f"How near does {transport} come to what the links allow?"
        points = wire.best_flat(found) if transport == found.ours else ()
        yield Answer(question, sentence, points=points, figure=NEAR)
    topic = systems.OTHERS if found.systems.empty else systems.NAME
    for transport in in_order(found.transports.get("transport", []), (*TRANSPORTS, *CONTENDERS)):
        question = f"How much slower than {found.ours} is {transport}?"
        yield Answer(question, _transport(found, transport), figure=topic)
    if not found.gloo.empty:
        question = f"How much slower than {TORCH} is {GLOO}?"
        done = f"with {GLOO} as with {TORCH}, over the same buffers"
        yield Answer(question, _slowdown(usual(found.gloo), found, done), figure=times.NAME)
    if OURS in found.unmeasured:
        yield _absent(f"How fast is {OURS}?", OURS, found)
    for factor, question, done in (
        ("binding", "What does it cost to spread ranks over nodes?", "spread over all nodes"),
        ("locality", "What does a distant buffer cost?", "with buffers on another node"),
    ):
        if sentence := _place(found, factor, done):
            yield Answer(question, sentence, figure=placement.NAME)
    yield from _where(found)
    if not found.python.empty:
        question = "What does Python itself cost?"
        yield Answer(question, cost.python(found), points=DIFFERENCES, figure=times.NAME)
    without = usual(found.baselines)
    for way in in_order(without.get("transport", []), TRANSPORTS):
        question = f"Without MPI ({transport_name(way)}), how much longer does it take?"
        done = f"with {way} as with the host's MPI calls"
        sentence = _slowdown(at(without, transport=way), found, done)
        yield Answer(question, sentence, figure=baselines.NAME)


def _workloads(found: Findings) -> Iterator[Answer]:
    """How much of each step is communication, on the host or the first arm there is."""
    every = of_first_arm(found.workloads)
    for operation in in_order(every["operation"], OPERATIONS):
        steps = at(every, operation=operation)
        arm = arm_name(steps["arm"].iloc[0])
        by_transport = steps.groupby("transport")["share"]
        least, most = by_transport.min(), by_transport.max()
        shares = [
            f"{percent_text(least[transport], 0)} to {percent_text(most[transport], 0)} of its "
            f"time on {transport}"
            for transport in in_order(steps["transport"], TRANSPORTS)
        ]
        question = f"How much of a {operation_name(operation)} is communication?"
        sentence = f"{arm.capitalize()}, from size to size: {', '.join(shares)}."
        yield Answer(question, sentence, figure=workloads.NAME)


def _where(found: Findings) -> Iterator[Answer]:
    """Where ranks and pages were, of machines on which that is a question."""
    asked = [
        each
        for each in found.page_maps
        if found.machine or sum(node.total_bytes > 0 for node in each.nodes) > 1
    ]
    pages = [each for page_map in asked for panel in page_map.panels for each in panel.pages]
    if asked:
        yield Answer(
            "Where was every rank, and where was every page?",
            _as_asked([each.as_asked for each in pages]),
            points=tuple(placement_text.answer(each) for each in asked),
            figure=MAP,
        )


def _as_asked(shares: Sequence[float | None]) -> str:
    """One share for each rank and kind of memory; None where no page is known."""
    pairs = f"{len(shares)} pairs of a rank and a kind of memory"
    unknown = shares.count(None)
    strays = sum(share != 1 for share in shares) - unknown
    silent = f" No page of {unknown} of {pairs} is known." if unknown else ""
    if strays:
        return f"Not always where asked: of {pairs}, {strays} had pages elsewhere.{silent}"
    if unknown == len(shares):
        return "Not measured. The results name no page."
    if unknown:
        return f"Every known page was on the nodes asked for.{silent}"
    return "Every page of every rank was on the nodes asked for, in every kind and launch."


def _memory(found: Findings) -> str:
    """How much faster other kinds of memory are; "" where the campaign asked for none."""
    frame = of_first_arm(of_one_kind(found))
    if frame.empty:
        reasons = [
            f"{kind}: {found.unmeasured[kind]}" for kind in KINDS if kind in found.unmeasured
        ]
        return f"Not measured. {'; '.join(reasons)}" if reasons else ""
    kind = frame["kind"].iloc[0]
    if emulated(frame):
        return (
            f"Not answered by this machine: {kind} was emulated on ordinary memory. The path "
            f"works; its ratios to {BASELINE} memory, {cost.span(frame)} over {len(frame)} cells, "
            "show the spread of the measurement and nothing about high-bandwidth memory."
        )
    if (frame["verdict"] == Verdict.TOO_FEW).all():
        return (
            f"{cost.span(frame)} times as fast in {kind} as in {BASELINE} memory from cell to "
            f"cell, {cost.few(frame)}."
        )
    faster = frame[(frame["verdict"] == Verdict.DIFFERS) & (frame["ratio"] > 1)]
    if faster.empty:
        return (
            f"No speed-up in any of {len(frame)} cells: in {BASELINE} memory they take "
            f"{cost.bound(frame)} more time than in {kind}." + cost.ending(frame, found)
        )
    best = max(rows(faster), key=lambda cell: cell.ratio)
    return (
        f"Up to {cost.claimed(best)} as fast in {kind} as in {BASELINE} memory "
        f"({in_words(best, *CELL, 'mpi', 'arm')}); faster beyond the noise floor in {len(faster)} "
        f"of {len(frame)} cells. The paper claims 445 %, read as 4.45 times, for Bcast at 16 "
        "ranks, and 487 % at most." + cost.ending(frame, found)
    )


def _place(found: Findings, factor: str, done: str) -> str:
    """What a placement costs, or why that was not measured; "" where it was not asked for."""
    frame = at(found.placements, factor=factor)
    _, held, levels = placement.FACTORS[factor]
    if frame.empty:
        absent = [level for level in reversed(levels) if level in found.unmeasured]
        reasons = "; ".join(f"{level}: {found.unmeasured[level]}" for level in absent)
        return f"Not measured. {reasons}" if reasons else ""
    return _slowdown(usual(frame, held), found, done)


def _transport(found: Findings, transport: str) -> str:
    frame = usual(at(found.transports, transport=transport))
    apart = transport.endswith(OVER_PRIVATE) or not found.systems.empty
    shared = "" if apart else ", over the same buffers"
    return _slowdown(frame, found, f"with {transport} as with {found.ours}{shared}")


def _containers(found: Findings) -> Iterator[Answer]:
    """What a container costs: in all, step by step, by operation; an answer per missing arm."""
    every = cost.compared(found)
    contained = every.cells[every.cells["arm"] != USERLAND] if len(every.cells) else every.cells
    operations = in_order(contained.get("operation", []), OPERATIONS)
    if not found.steps.empty:
        question = "What do the image's files cost without a container: its Python, its libc?"
        yield Answer(question, cost.files(found), figure=chain.NAME)
    over, topic = cost.base_name(every.base), container.NAME if every.base == HOST else chain.NAME
    for name in operations:
        question = f"What does a container cost {operation_name(name)}, {over}?"
        yield Answer(question, *cost.cost(found, name), figure=topic)
    if slowest := cost.tails(found) if operations else "":
        yield Answer(f"What do the slowest operations (p99) take {over}?", slowest)
    if operations or not found.steps.empty:
        yield from _causes(found)
    for arm in absent_containers(found.unmeasured):
        yield _absent(f"What does a container cost ({arm_name(arm)})?", arm, found)


def _causes(found: Findings) -> Iterator[Answer]:
    """What a container lost, and what else may be the cause of its cost."""
    if differences := data_path_text.sentences(found.data_paths):
        way = "Which data path did a container lose, what gets it back, and what did it cost?"
        none = "None: each MPI took the same ways in every container as on the host."
        lost = data_path_text.short(found.data_paths.losses) or none
        yield Answer(way, lost, points=(*differences, *cost.losses(found)), figure=container.NAME)
    if others := tuple(confounder_text.beside_data_path(found)):
        cause = "What may be the cause beside the container itself?"
        yield Answer(cause, others[0], points=others[1:])


def _slowdown(frame: pd.DataFrame, found: Findings, done: str) -> str:
    """How long something takes beside something else, a sentence for each form of calls.

    Of one arm, and of real memory where there is any: arms differ in their data paths, and emulated
    kinds are the same memory again.
    """
    every = of_real_memory(of_first_arm(frame))
    arm = str(every["arm"].iloc[0])
    forms = in_order(every["form"], FORMS)
    place = "" if arm in BASELINES else "on the host, " if arm == HOST else f"{arm_name(arm)}: "
    sentences = [
        _slowdown_of(at(every, form=form), done, place, f"{form} calls, " * (len(forms) > 1))
        for form in forms
    ]
    return " ".join(sentences) + cost.ending(every, found)


def _slowdown_of(frame: pd.DataFrame, done: str, place: str, calls: str) -> str:
    middle = float(np.median(frame["ratio"]))
    opening = f"{place}{calls}the median cell"
    start = (
        f"{opening[0].upper()}{opening[1:]} takes {ratio_text(middle)} times as long {done} "
        f"({cost.span(frame)} from cell to cell of {len(frame)})"
    )
    if (frame["verdict"] == Verdict.TOO_FEW).all():
        return f"{start}, {cost.few(frame)}."
    parts = [
        f"{word} beyond the noise floor in {len(mine)}, most in {in_words(most, *CELL)}: "
        f"{cost.claimed(most)}"
        for word, mine, most in cost.effects(frame)
    ]
    rest = frame[frame["verdict"] != Verdict.DIFFERS]
    if len(rest):
        parts.append(f"{cost.bound(rest)} in {'the other' if parts else 'all'} {len(rest)}")
    return f"{start}: {'; '.join(parts)}."
