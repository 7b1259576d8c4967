"""Programs beside the harness, started as a campaign starts them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.catalogue import spec
from experiments.environments.host import Host
from experiments.jobs.execute import execute
from experiments.model.environment import BARE_HOST
from experiments.model.launch import Launch
from experiments.schedule.blocks import schedule


def launch(
    program: str, *sizes: int, launches: dict[str, Any], timing: dict[str, Any], **factors: Any
) -> Launch:
    """The first launch of a program in a campaign on the host.

    Args:
        launches, timing, factors: what differs from the experiment "quick".
    """
    asked = spec.load("quick")
    alone = {"environments": (BARE_HOST,), "external": (program,), "ranks": (2,)}
    experiment = replace(
        asked,
        factors=replace(asked.factors, **{"sizes": sizes, "largest": {}} | factors),
        launches=replace(asked.launches, **alone | launches),
        measurement=replace(asked.measurement, **timing),
    )
    return next(
        candidate
        for candidate in schedule(experiment, 1)[0].launches
        if candidate.program == program
    )


def run(asked: Launch, folder: Path, starter: Host) -> tuple[int, str]:
    """The program's exit code, and what it printed."""
    (folder / "launch.json").write_text(json.dumps(asked.to_dict()))
    log = folder / "log"
    return execute(starter.command(asked, folder), log, None, lambda: None), log.read_text()
