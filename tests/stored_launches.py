"""Results folders by results' own writer, as a campaign leaves them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.model.experiment import Experiment
from experiments.model.launch import FORMAT, Block, Launch
from experiments.results import store


def begin(folder: Path, asked: Experiment, blocks: Iterable[Block] = (), **header: Any) -> None:
    """The folder of a campaign without launches; `header` has more of campaign.json."""
    plan = [
        {"block": block.number, "launches": [launch.name for launch in block.launches]}
        for block in blocks
    ]
    least = {"name": asked.name, "experiment": asked.to_dict(), "seed": 1, "schedule": plan}
    store.create(folder, least | header)


def finish(
    folder: Path,
    launch: Launch,
    cells: Iterable[Mapping[str, Any]],
    samples: Mapping[str, Any],
    **result: Any,
) -> None:
    """A launch that measured this; `result` has more of its JSON."""
    least = {"format": FORMAT, "launch": launch.to_dict(), "ranks": []}
    least["environment"] = {"versions": {}}
    with store.incoming(folder, launch.name) as place:
        (place / "result.json").write_text(json.dumps(least | {"cells": list(cells)} | result))
        np.savez(place / "samples.npz", **samples)
        store.accept(folder, launch.name, place)
