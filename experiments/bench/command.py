"""What `invoke bench` does once its flags are read: measure, and show what finished in any case."""

import contextlib
import json
from pathlib import Path

from experiments.analysis.reading import Campaign, load
from experiments.bench import compare, other_build, table
from experiments.console.output import to_stdout
from experiments.console.stages import Stages
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.model.contender_names import OTHER_PACKAGE
from experiments.model.experiment import MPIS_ARE_ARMS, Experiment
from experiments.results import store
from experiments.results.store import ResultsError

WIDTH = 80  # columns where standard output is no terminal
TABLE = "table.json"
"""Everything that is printed, and the launch medians that it comes from, for programs."""


def run(
    asked: Experiment,
    out: Path,
    seed: int | None,
    stages: Stages,
    as_json: bool,
    peers: str = "",
    against: str = "",
) -> None:
    """Measure into a new folder and print its tables, also where Ctrl-C or an error ends it.

    Args:
        peers: those that the user named, so that an MPI that cannot be had is an error; gloo and
            torch are notes all the same.
        against: a checkout or installed tree of another build of the library; "": none.
    """
    store.refuse_existing(out)
    variables, notes = {}, {}
    if against:
        with stages.stage("other build"):
            label, package = other_build.prepare(Path(against), stages.say)
        variables[OTHER_PACKAGE], notes[compare.OTHER_LABEL] = str(package), label
    request = Request(out, seed=seed, optional=not peers, variables=variables, notes=notes)
    try:
        campaign.run(asked, request, stages)
    except BaseException:
        with contextlib.suppress(Exception):  # what ended the measurement is the error to report
            _write(out, as_json)
        raise
    _write(out, as_json)


def _write(out: Path, as_json: bool) -> None:
    """Write TABLE and show what finished, if anything did."""
    if store.finished(out):
        store.write_json(out / TABLE, compare.summary(read(out)))
        show(out, as_json)


def show(folder: Path, as_json: bool) -> None:
    """The tables of a stored bench on standard output, as JSON where that is wanted.

    Raises:
        ResultsError: the folder holds no bench, or no finished launch of it.
    """
    found = read(folder)
    if as_json:
        print(json.dumps(compare.summary(found), indent=1, sort_keys=True))
        return
    to_stdout(table.render(found), WIDTH)


def read(folder: Path) -> Campaign:
    """A stored bench.

    Raises:
        ResultsError: the folder holds none, or no finished launch of it.
    """
    found = load(folder)
    if found.experiment.launches.arms != MPIS_ARE_ARMS:
        raise ResultsError(
            f"{folder} holds the campaign {found.name}, and no bench; draw it: "
            f"./inv report --results {folder}"
        )
    return found
