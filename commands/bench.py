"""The invoke task `bench`: its flags, what they ask for, and what is printed and drawn of it.

Imports pandas and matplotlib in the functions that need them: that takes time which other tasks
need not pay.
"""

import contextlib
import json as json_format
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.context import Context

import hbmcomm
from commands.exits import command
from commands.flags import whole_number
from commands.folders import new_figures, new_results, writable
from experiments.catalogue import spec
from experiments.console import Stages, to_stdout
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.model.contender_names import OTHER_LABEL, OTHER_PACKAGE
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import MPIS_ARE_ARMS, Experiment
from experiments.provision import other_build, passthrough
from experiments.results import store
from experiments.results.store import ResultsError

if TYPE_CHECKING:
    from experiments.analysis.campaign import Campaign

SHARED = ("ranks", "blocks", "out", "seed")
"""Flags that a bench of peers and one of thresholds both take."""
TUNE_TAKES = "--ranks, --blocks, --out, --seed and --json"
MOST_RANKS = 16  # that are taken unasked
WIDTH, TUNE_WIDTH = 80, 150  # columns where standard output is not a terminal
TABLE, PROPOSAL = "table.json", "proposal.json"
"""Everything that is printed, and what it comes from, for programs."""


@command(
    help={
        "ranks": "rank counts: 2,4 (default: one per core, 16 at most)",
        "sizes": "bytes per rank, as for run (default: 8:16MiB:8)",
        "ops": "Allreduce,Bcast, ... or all (default: Bcast,Gather,Allreduce)",
        "peers": "of openmpi,mpich,impi,pickle,objects,gloo,torch,operators,vllm,deepspeed "
        "(default: all that can be had)",
        "peers-tuned": "each MPI in all settings known to make it faster; its best counts per cell",
        "forms": "of plain,persistent,nonblocking,in-place (default: plain,persistent)",
        "against": "a checkout or installed tree of another build of hbmcomm, to compare with",
        "private": "over ordinary NumPy arrays instead of arrays of the arena",
        "cadence": "isolated (default: synchronised before each operation) or streaming",
        "blocks": "launches of each MPI and setting (default: 6, the fewest with an interval)",
        "tune": "measure the thresholds of transport direct here and propose a table; takes "
        "--ranks (one number, default: 2), --blocks, --out, --seed and --json",
        "out": "results folder (default: results/bench-<time>, of --tune: results/tune-<time>)",
        "figures": "folder for the figures (default: figures/bench-<time>)",
        "seed": "seed of all random orders (default: random, and stored)",
        "json": "print JSON instead of tables",
        "results": "print a stored bench again, and measure nothing; takes --json",
    }
)
def bench(
    context: Context,
    ranks: str = "",
    sizes: str = "",
    ops: str = "",
    peers: str = "",
    peers_tuned: bool = False,
    forms: str = "",
    against: str = "",
    private: bool = False,
    cadence: str = "",
    blocks: str = "",
    tune: bool = False,
    out: str = "",
    figures: str = "",
    seed: str = "",
    json: bool = False,
    results: str = "",
) -> None:
    """hbmcomm against MPIs, pickle, torch.distributed and operators of torch on this machine.

    All MPIs are alive at the same time and take turns; each measures itself and hbmcomm over the
    same buffers, and ratios are paired within it. Ctrl-C shows what there is.

    With --tune no peer takes part: each threshold of transport direct (./inv doctor --tuning) is
    tried on both sides of its value. Values that are faster on this machine beyond its noise are
    printed as a table and as `export HBMCOMM_...` lines. About two minutes; tune for the number of
    ranks that you run.

    Examples:  ./inv bench
               ./inv bench --ops Allreduce --sizes 1KiB:16MiB:4
               ./inv bench --ranks 2,4 --peers openmpi,pickle --private --json
               ./inv bench --peers-tuned --ops all --forms plain,persistent,nonblocking
               ./inv bench --ops Allreduce --forms in-place --peers operators,vllm,deepspeed
               ./inv bench --peers openmpi --against ../hbmcomm-0.1
               ./inv bench --results results/bench-20260102-030405
               ./inv bench --tune --ranks 4
    """
    flags: dict[str, Any] = {"ranks": ranks, "blocks": blocks, "out": out, "seed": seed}
    flags |= {"ops": ops, "sizes": sizes, "peers": peers, "peers-tuned": peers_tuned}
    flags |= {"forms": forms, "against": against, "private": private, "cadence": cadence}
    flags |= {"figures": figures}
    if results:
        show(read(Path(results)), json)
        return
    stages = Stages()
    asked = thresholds(flags) if tune else question(flags)
    folder = writable("out", new_results(asked.name, out))
    target = None if tune else new_figures("figures", figures, folder)
    request = Request(folder, seed=whole_number("seed", seed, 0), optional=not peers)
    measured = measure(asked, _with_other_build(request, against, stages), stages, json)
    written: list[Path] = []
    if target:
        with stages.stage("figures"):
            from plots import draw

            written = draw.draw_campaign(measured, target)
    stages.say("\n".join(str(path) for path in (folder, *written)))


def question(flags: Mapping[str, Any]) -> Experiment:
    """The catalogue's bench, as flags change it."""
    ranks = str(min(max(2, passthrough.cores()), MOST_RANKS))
    return spec.restrict(
        spec.load("bench"),
        ranks=flags["ranks"] or ranks,
        blocks=whole_number("blocks", flags["blocks"], 1),
        kinds=hbmcomm.default_kind(),
        operations=flags["ops"],
        tuned=flags["peers-tuned"],
        other_build=bool(flags["against"]),
        **{flag: flags[flag] for flag in ("sizes", "forms", "cadence", "peers", "private")},
    )


def thresholds(flags: Mapping[str, Any]) -> Experiment:
    """The catalogue's measurement of thresholds; refuses flags that say what peers do."""
    if refused := [f"--{flag}" for flag, value in flags.items() if value and flag not in SHARED]:
        raise ExperimentsError(
            f"{', '.join(refused)}: not with --tune, which measures transport direct against "
            f"itself, at operations and sizes of its own; it takes {TUNE_TAKES}"
        )
    blocks = whole_number("blocks", flags["blocks"], 1)
    kind = hbmcomm.default_kind()
    return spec.restrict(spec.load("tune"), ranks=flags["ranks"], blocks=blocks, kinds=kind)


def _with_other_build(request: Request, against: str, stages: Stages) -> Request:
    """The request with the other build that takes part, copied and compiled."""
    store.refuse_existing(request.out)
    if not against:
        return request
    with stages.stage("other build"):
        label, package = other_build.prepare(Path(against), stages.say)
    return replace(request, variables={OTHER_PACKAGE: str(package)}, notes={OTHER_LABEL: label})


def measure(asked: Experiment, request: Request, stages: Stages, as_json: bool) -> "Campaign":
    """Measure into a new folder; print what finished, also where Ctrl-C or an error ends it."""
    try:
        campaign.run(asked, request, stages)
    except BaseException:
        with contextlib.suppress(Exception):  # what ended the measurement is the error to report
            show(read(request.out), as_json, keep=True)
        raise
    measured = read(request.out)
    show(measured, as_json, keep=True)
    return measured


def read(folder: Path) -> "Campaign":
    """A stored bench, of peers or of thresholds.

    Raises:
        ResultsError: the folder holds none, or no finished launch of it.
    """
    from experiments.analysis.reading import load

    bench = load(folder)
    asked = bench.experiment
    if asked.launches.arms != MPIS_ARE_ARMS and not asked.factors.thresholds:
        raise ResultsError(
            f"{folder} holds the campaign {bench.name}, and no bench; draw it: "
            f"./inv report --results {folder}"
        )
    return bench


def show(bench: "Campaign", as_json: bool, keep: bool = False) -> None:
    """The tables of a bench on standard output, as JSON where that is wanted.

    Args:
        keep: whether that JSON is written beside what was measured, too.
    """
    from experiments.analysis import peers
    from experiments.analysis import thresholds as tuning
    from plots.tables import peers as peers_table
    from plots.tables import thresholds as thresholds_table

    if bench.experiment.factors.thresholds:
        tuned = tuning.tuned(bench)
        name, summary = PROPOSAL, tuning.summary(tuned)
        table, width = thresholds_table.render(tuned), TUNE_WIDTH
    else:
        name, summary = TABLE, peers.summary(bench)
        table, width = peers_table.render(bench), WIDTH
    if keep:
        store.write_json(bench.folder / name, summary)
    if as_json:
        print(json_format.dumps(summary, indent=1, sort_keys=True))
    else:
        to_stdout(table, width)
