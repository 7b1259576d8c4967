"""A driver killed before any one of its file operations leaves a folder that can be completed.

Every operation is tried in turn: a child process does what a campaign does to its folder and ends
without a word before that operation.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.catalogue import spec
from experiments.driver import reaper
from experiments.model.launch import FORMAT
from experiments.results import store
from tests.launched import LAUNCH

OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")
NAMES = ("0000-host", "0000-docker")
HEADER = {"name": "torn", "experiment": spec.load("quick").to_dict(), "seed": 1, "schedule": []}
RESULT = {"format": FORMAT, "cells": [], "environment": {"versions": {}}}
KILLED = 9


def campaign(folder: Path) -> None:
    """Begin it where it was not, and measure what is not finished."""
    if not (folder / "campaign.json").exists():
        store.create(folder, HEADER)
    for name in NAMES:
        if name not in store.finished(folder):
            with store.incoming(folder, name) as place:
                launch = replace(LAUNCH, arm=name.partition("-")[2]).to_dict()
                (place / "result.json").write_text(json.dumps(RESULT | {"launch": launch}))
                np.savez(place / "samples.npz", c0=np.ones((3, 2)))
                store.accept(folder, name, place)


def killed_before(operation: int, folder: Path) -> bool:
    """Whether a child that does all this came to that operation, and died there."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED
    left = operation

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in OPERATIONS and str(arguments[0]).startswith(str(folder)):
            left -= 1
            if left < 0:
                os._exit(KILLED)

    sys.addaudithook(hook)
    try:
        campaign(folder)
    except BaseException:
        os._exit(1)
    os._exit(0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("cleared", [True, False])
def test_a_kill_at_any_moment_leaves_what_can_be_completed(tmp_path: Path, cleared: bool) -> None:
    operation, stages = 0, set()
    while killed_before(operation, folder := tmp_path / f"before{operation}"):
        assert store.finished(folder) <= set(NAMES)
        for name in store.finished(folder):
            store.read_launch(folder, name)  # whole, with the samples that it wrote
        kept = {path: path.read_bytes() for path in folder.glob("launches/*.json")}
        stages.add((len(kept), len(list(folder.glob("launches/*.npz")))))
        if cleared:
            reaper.clear(folder, {"place": "another boot"})
        campaign(folder)
        assert store.finished(folder) == set(NAMES)
        left = {path.name for path in folder.iterdir()}
        assert left == {".names.json", "campaign.json", "launches"} or not cleared
        assert store.read_header(folder)["name"] == "torn"
        assert len(list(folder.glob("launches/*"))) == 4
        for name in NAMES:
            store.read_launch(folder, name)
        assert {path: path.read_bytes() for path in kept} == kept
        operation += 1
    assert operation > 30
    assert {(0, 0), (0, 1), (1, 1), (1, 2)} <= stages  # samples without their JSON, too
