"""A user's program, measured into a folder."""

from pathlib import Path

from rich.console import Console

from experiments.console import Stages
from experiments.driver import program_campaign
from experiments.model.program import ProgramRequest
from experiments.results.program_runs import ProgramRuns, read_runs


def measured(asked_for: ProgramRequest, out: Path) -> tuple[ProgramRuns, list[str], str]:
    """The campaign, why runs were lost, and what the user read."""
    with (out.parent / "shown").open("w+") as shown:
        stages = Stages(Console(file=shown, width=200))
        lost = program_campaign.run(asked_for, out, stages, seed=1)
        shown.seek(0)
        return read_runs(out), lost, shown.read()
