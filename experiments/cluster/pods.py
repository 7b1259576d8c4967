"""Runs the launches of a campaign one after the other, in the launcher pod of an MPIJob.

`python -m experiments.cluster.pods NAME`: PLAN holds campaign.json and the launches with their
commands; results are a folder NAME of RESULTS, as `./inv run` writes it. Launches that are
finished there are left out, so a job that is created again goes on. Needs no package of the driver.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from experiments.model import plain_file
from experiments.model.errors import ExperimentsError
from experiments.results import store

PLAN, RESULTS = Path("/plan"), Path("/results")
LAUNCHES = "launches.json"
PLANNED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "[A-Za-z0-9][A-Za-z0-9._-]*"},
        "command": {"type": "array", "items": {"type": "string"}},
        "launch": {"type": "object"},
    },
    "required": ["name", "command", "launch"],
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"launches": {"type": "array", "items": PLANNED}},
    "required": ["launches"],
}
"""What LAUNCHES holds, as JSON Schema has it; a launch itself is checked when it is taken in."""


def measure(plan: Path, out: Path) -> None:
    """Measure what a results folder lacks of a plan.

    Raises:
        SystemExit: a launch failed; names its log.
        ExperimentsError: the plan, a log or what a launch wrote is torn or something else.
    """
    if not (out / "campaign.json").exists():
        store.create(out, store.read_json(plan / "campaign.json"))
    (out / "logs").mkdir(exist_ok=True)
    for each in store.read_json(plan / LAUNCHES, SCHEMA)["launches"]:
        name = each["name"]
        if name in store.finished(out):
            continue
        words = [os.path.expandvars(word) for word in each["command"]]
        log = out / "logs" / f"{name}.log"
        with store.incoming(out, name) as place, plain_file.written(log) as file:
            store.write_json(place / "launch.json", each["launch"])
            done = subprocess.run(
                [*words, str(place)], stdout=file, stderr=subprocess.STDOUT, check=False
            )
            if done.returncode:
                sys.exit(f"launch {name} ended with exit code {done.returncode}: see {log}")
            store.add(place, {"command": " ".join(each["command"])})
            store.accept(out, name, place)
        print(f"{name} is measured", flush=True)


if __name__ == "__main__":
    try:
        measure(PLAN, RESULTS / sys.argv[1])
    except ExperimentsError as error:
        sys.exit(str(error))
