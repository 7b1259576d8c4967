"""Runs the launches of a campaign one after the other, in the launcher pod of an MPIJob.

`python -m experiments.cluster.pods NAME`: PLAN holds campaign.json and the launches with their
commands; results are a folder NAME of RESULTS, as `./inv run` writes it. Launches that are
finished there are left out, so a job that is created again goes on. Needs no package of the driver.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from experiments.results import store

PLAN, RESULTS = Path("/plan"), Path("/results")
LAUNCHES = "launches.json"


def measure(plan: Path, out: Path) -> None:
    """Measure what a results folder lacks of a plan.

    Raises:
        SystemExit: a launch failed; names its log.
    """
    if not (out / "campaign.json").exists():
        store.create(out, store.read_json(plan / "campaign.json"))
    (out / "logs").mkdir(exist_ok=True)
    for each in json.loads((plan / LAUNCHES).read_text(encoding="utf-8")):
        name = each["name"]
        if name in store.finished(out):
            continue
        words = [os.path.expandvars(word) for word in each["command"]]
        log = out / "logs" / f"{name}.log"
        with store.incoming(out, name) as place, log.open("w", encoding="utf-8") as file:
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
    measure(PLAN, RESULTS / sys.argv[1])
