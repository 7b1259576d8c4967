"""`bench`: peers on this machine, thresholds tuned, a stored bench printed again."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.flags import whole_number
from commands.folders import new_figures, new_results, writable
from commands.stored import draw
from experiments.bench import command, question
from experiments.bench.tune import command as tune_command
from experiments.bench.tune import question as tune_question
from experiments.console.stages import Stages
from experiments.provision import passthrough

PARAMETERS = {"ops": "operations", "peers-tuned": "tuned"}
"""Flags with a parameter of another name in question.ask()."""


@dataclass(frozen=True)
class Flags:
    """The flags that a bench of peers and one of thresholds share; "" is the default."""

    ranks: str
    blocks: str
    out: str
    seed: str
    json: bool


def show(results: str, json: bool) -> None:
    """Print a stored bench again."""
    command.show(Path(results), json)


def compare_peers(common: Flags, flags: Mapping[str, Any], figures: str) -> None:
    """Measure hbmcomm against other MPIs; print tables and draw figures.

    Args:
        flags: values of the flags that choose what is measured, by flag.
    """
    asked = question.ask(
        passthrough.cores(),
        ranks=common.ranks,
        blocks=whole_number("blocks", common.blocks, 1),
        **{PARAMETERS.get(flag, flag): value for flag, value in flags.items()},
    )
    folder = writable("out", new_results("bench", common.out))
    target = new_figures("figures", figures, folder)
    stages = Stages()
    command.run(asked, folder, whole_number("seed", common.seed, 0), stages, common.json)
    with stages.stage("figures"):
        written = draw(folder, target)
    stages.say("\n".join(str(path) for path in (folder, *written)))


def tune(common: Flags, others: Mapping[str, str | bool]) -> None:
    """Measure the thresholds of transport direct; propose a table.

    Args:
        others: values of the flags that do not go with --tune, by flag.
    """
    count = whole_number("blocks", common.blocks, 1)
    refused = {f"--{flag}": value for flag, value in others.items()}
    asked = tune_question.ask(passthrough.cores(), common.ranks, count, refused)
    folder, stages = writable("out", new_results("tune", common.out)), Stages()
    tune_command.run(asked, folder, whole_number("seed", common.seed, 0), stages, common.json)
    stages.say(str(folder))
