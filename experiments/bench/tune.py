"""What `invoke bench --tune` does once its flags are read: measure, and show what finished.

The launches are the harness's, with `direct` and its changed thresholds as contenders.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import hbmcomm
from experiments.analysis.statistics import FEWEST_BLOCKS
from experiments.bench import tune_store
from experiments.bench.propose import Proposal
from experiments.bench.trials import NEVER, Place, trials
from experiments.bench.tune_schedule import FLAVOUR, Question, schedule
from experiments.bench.tune_store import Tuned
from experiments.console.output import to_stdout
from experiments.console.progress_bar import Display
from experiments.console.stages import Stages
from experiments.driver import campaign_file, watchdog
from experiments.driver.launching import LaunchContext, attended
from experiments.environments.host import Host
from experiments.machine import binding
from experiments.model.contender_names import CALLS
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Launch
from experiments.model.quantities import amount_text, percent_text, ratio_text, size_text
from experiments.provision import mpi_wheels, passthrough
from experiments.results import store as results

WIDTH = 150  # columns where standard output is no terminal: a line per row
ADVICE = "look at it, then tune again"
BEGIN = 2.5  # seconds in which the ranks of a launch start, make their communicators, and end
OVERHEAD = 2.5  # a turn's time over what counts: warm-up, rewriting, barriers


def run(question: Question, out: Path, seed: int | None, stages: Stages, as_json: bool) -> None:
    """Measure into a new folder and print the proposal, also where Ctrl-C or an error ends it."""
    results.refuse_occupied(out)
    try:
        _measure(question, out, seed, stages)
    finally:
        if results.finished(out):
            show(out, as_json)


def show(folder: Path, as_json: bool) -> None:
    """Store the proposal and show it on standard output, as JSON where that is wanted."""
    found = tune_store.load(folder)
    proposal = tune_store.plain(found)
    results.write_json(folder / tune_store.PROPOSAL, proposal)
    if as_json:
        print(json.dumps(proposal, indent=1, sort_keys=True))
        return
    to_stdout(render(found), WIDTH)


def _measure(question: Question, out: Path, seed: int | None, stages: Stages) -> None:
    """Measure into `out`; launches that finish stay, whatever ends the run."""
    with watchdog.watching(out, stages.say):
        prefix = mpi_wheels.ensure(FLAVOUR, stages.say)
        seed = campaign_file.drawn() if seed is None else seed
        thresholds = hbmcomm.tuning(question.ranks)
        planned, left_out = trials(thresholds, place(question.ranks))
        launches = schedule(question, planned, hbmcomm.default_kind(), seed)
        header = {
            "question": asdict(question),
            "seed": seed,
            "schedule": [launch.name for launch in launches],
            "cores": passthrough.cores(),
            **campaign_file.origin(),
            "thresholds": [each._asdict() for each in thresholds],
            "trials": [asdict(each) for each in planned],
            "left_out": left_out,
        }
        results.create(out, header, tune_store.HEADER)
        turns = sum(len(each.plan) * each.measurement.time_cap for each in launches)
        seconds = len(launches) * BEGIN + turns * OVERHEAD
        stages.say(f"{len(launches)} launches, which take about {seconds:.0f} s")
        command = Host(FLAVOUR, prefix, passthrough.cores()).command
        context = LaunchContext(out, command, passthrough.owner(), advice=ADVICE)
        with stages.stage("measurement", spinner=False), Display(len(launches), 0) as display:
            for launch in launches:
                display.begin(launch.name)
                _attend(context, launch, display.within)
                display.end()


def _attend(context: LaunchContext, launch: Launch, within: Callable[[float], None]) -> None:
    """Run a launch, and take what it found into the folder; refuses one that left a cell out."""
    with attended(context, launch, within) as (folder, _):
        for cell in results.written(folder)["cells"]:
            if "skipped" in cell:
                raise ExperimentsError(f"these ranks cannot be tuned: {cell['skipped']}")


def place(ranks: int) -> Place:
    """Where so many ranks are pinned."""
    topology = hbmcomm.topology()
    cpus = binding.cpus_by_node()
    used = {binding.cpu_of(rank, "packed", cpus) for rank in range(ranks)}
    nodes = sum(1 for node in topology.nodes if used.intersection(node.cpus))
    caches = sum(1 for each in topology.caches if each.node is None and used & set(each.cpus))
    return Place(ranks, nodes, max(1, caches))


UNCHANGED = "nothing to change: no other value is certainly faster on this machine"


def render(found: Tuned) -> RenderableType:
    """The table, how to read it, and the shell lines."""
    ranks = found.header["question"]["ranks"]
    table = Table(title=f"Thresholds of transport direct, {ranks} ranks", title_justify="left")
    table.add_column("variable", no_wrap=True)
    table.add_column("now", justify="right", no_wrap=True)
    table.add_column("proposed", justify="right", no_wrap=True)
    table.add_column("gain, or why it stays")
    for each in found.proposals:
        proposed = Text(_amount(each.proposed, each.unit), "bold green") if each.changes else ""
        table.add_row(each.variable, _amount(each.now, each.unit), proposed, _reason(each))
    return Group(table, *(Text(line) for line in _legend(found)))


def _reason(each: Proposal) -> str:
    if each.gain is None or each.cell is None:
        return each.why
    gain, cell = each.gain, each.cell
    where = CALLS[cell.operation] + (f" of {size_text(cell.bytes)}" if cell.bytes else "")
    return (
        f"{ratio_text(gain.value)}× as fast ({ratio_text(gain.low)} to {ratio_text(gain.high)}) "
        f"in {where}"
    )


def _legend(found: Tuned) -> Iterator[str]:
    yield (
        "A gain is that of the operation and size that gain most: the median over launches of "
        "ratios that are paired within a turn, with its exact 95 % interval. The same way strays "
        f"{percent_text(found.noise)} from itself; all operations of a size together must gain "
        "more. Each threshold was measured with all others as they are now."
    )
    for note in found.notes:
        yield f"Note: {note}."
    yield ""
    launches = min(
        (len(each.ratios) for every in found.compared.values() for each in every), default=0
    )
    if found.exports:
        yield "Put it into force, in the environment of rank 0:"
        yield from found.exports
    elif launches < FEWEST_BLOCKS:
        yield f"nothing can be proposed yet: that takes {FEWEST_BLOCKS} launches"
    else:
        yield UNCHANGED


def _amount(number: int, unit: str) -> str:
    """ "never" for bytes that no message has."""
    return "never" if unit == "bytes" and number >= NEVER else amount_text(number, unit)
