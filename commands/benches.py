"""`bench`: peers on this machine, thresholds tuned, a stored bench printed again.

Imports pandas in the functions that need it: that takes time which other tasks need not pay.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commands.flags import whole_number
from commands.folders import new_figures, new_results, writable
from commands.stored import draw
from experiments.bench import question
from experiments.bench import tune_schedule as tune_question
from experiments.console.stages import Stages
from experiments.provision import passthrough

PARAMETERS = {"ops": "operations", "peers-tuned": "tuned"}
"""Flags with a parameter of another name in question.ask()."""
SHARED = ("ranks", "blocks", "out", "seed")
"""Flags that a bench of peers and one of thresholds both take."""


def show(results: str, json: bool) -> None:
    """Print a stored bench again."""
    from experiments.bench import command

    command.show(Path(results), json)


def compare_peers(flags: Mapping[str, Any], json: bool) -> None:
    """Measure hbmcomm against other MPIs; print tables and draw figures.

    Args:
        flags: values by flag.
    """
    from experiments.bench import command

    own = flags.keys() - {*SHARED, "figures"}
    chosen = {PARAMETERS.get(flag, flag): flags[flag] for flag in own}
    count = whole_number("blocks", flags["blocks"], 1)
    asked = question.ask(passthrough.cores(), ranks=flags["ranks"], blocks=count, **chosen)
    folder = writable("out", new_results("bench", flags["out"]))
    target = new_figures("figures", flags["figures"], folder)
    stages = Stages()
    seed = whole_number("seed", flags["seed"], 0)
    command.run(asked, folder, seed, stages, json, flags["peers"], flags["against"])
    with stages.stage("figures"):
        written = draw(folder, target)
    stages.say("\n".join(str(path) for path in (folder, *written)))


def tune(flags: Mapping[str, Any], json: bool) -> None:
    """Measure the thresholds of transport direct; propose a table.

    Args:
        flags: values by flag; those that are not SHARED are refused.
    """
    from experiments.bench import tune as command

    count = whole_number("blocks", flags["blocks"], 1)
    refused = {f"--{flag}": value for flag, value in flags.items() if flag not in SHARED}
    asked = tune_question.ask(passthrough.cores(), flags["ranks"], count, refused)
    folder, stages = writable("out", new_results("tune", flags["out"])), Stages()
    command.run(asked, folder, whole_number("seed", flags["seed"], 0), stages, json)
    stages.say(str(folder))
