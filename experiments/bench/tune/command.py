"""What `invoke bench --tune` does once its flags are read: measure, and show what finished.

The launches are the harness's, with `direct` and its changed thresholds as contenders.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import hbmcomm
from experiments.bench.tune import store, table
from experiments.bench.tune.question import Question
from experiments.bench.tune.schedule import FLAVOUR, schedule
from experiments.bench.tune.trials import Place, trials
from experiments.console.output import to_stdout
from experiments.console.progress_bar import Display
from experiments.console.stages import Stages
from experiments.environments.host import Host
from experiments.execution import campaign_file
from experiments.execution.cleanup import watchdog
from experiments.execution.launching import LaunchContext, attended
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Launch
from experiments.programs.machine import binding
from experiments.provision import passthrough
from experiments.provision.wheels import mpi
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
    found = store.load(folder)
    proposal = store.plain(found)
    results.write_json(folder / store.PROPOSAL, proposal)
    if as_json:
        print(json.dumps(proposal, indent=1, sort_keys=True))
        return
    to_stdout(table.render(found), WIDTH)


def _measure(question: Question, out: Path, seed: int | None, stages: Stages) -> None:
    """Measure into `out`; launches that finish stay, whatever ends the run."""
    with watchdog.watching(out, stages.say):
        prefix = mpi.ensure(FLAVOUR, stages.say)
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
        results.create(out, header, store.HEADER)
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
