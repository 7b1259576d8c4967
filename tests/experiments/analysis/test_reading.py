"""What bounds a cell is read as its bound and not as a cell."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.reading import load
from experiments.catalogue import spec
from experiments.model.contender_names import NO_TRANSPORT
from experiments.model.launch import FORMAT
from experiments.results import store
from experiments.schedule.blocks import schedule

SECONDS = {NO_TRANSPORT: 2.0, "gloo": 8.0, "torch": 2.5}


def test_the_computation_alone_bounds_the_steps_of_its_size(tmp_path: Path) -> None:
    asked = spec.restrict(spec.load("torch_decode"), environments="host", blocks=1)
    launch = schedule(asked, 1)[0].launches[0]
    header = {"name": "torch_decode", "experiment": asked.to_dict(), "seed": 1, "machine": {}}
    out = tmp_path / "steps"
    store.create(out, header | {"schedule": []})
    cells, samples = [], {}
    for number, cell in enumerate(launch.plan):
        key = f"c{number}"
        record = {"samples": key, "warmup": 1, "group": 1, "turn": 2, "emulated": False}
        cells.append(asdict(cell) | record)
        samples[key] = np.full((5, 2), cell.bytes * SECONDS[cell.transport])
    with store.incoming(out, launch.name) as place:
        result = {"format": FORMAT, "launch": launch.to_dict(), "cells": cells}
        result |= {"environment": {}, "ranks": []}
        (place / "result.json").write_text(json.dumps(result))
        np.savez(place / "samples.npz", **samples)  # type: ignore[arg-type]
        store.accept(out, launch.name, place)
    campaign = load(out)
    assert campaign.controls.empty
    assert set(campaign.cells["transport"]) == {"gloo", "torch"}
    assert len(campaign.cells) == 2 * len(asked.factors.sizes)
    ratios = campaign.cells["bound_s"] / campaign.cells["bytes"]
    assert ratios.to_list() == pytest.approx([SECONDS[NO_TRANSPORT]] * len(ratios))
