"""What a bench's folder tells beside its times: one note for each thing to know."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import results
from experiments.bench import store
from experiments.bench.question import ask
from experiments.bench.schedule import Launch, LeftOut, schedule
from experiments.schedule import FORMAT

ASKED = ask(2, operations="Bcast", sizes="8,1KiB", peers="openmpi", tuned=True, blocks=1)
LAUNCHES = {launch.setting: launch for launch in schedule(ASKED, 1)}
Write = Callable[..., None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = [launch.name for launch in LAUNCHES.values()]
    header = {"question": ASKED.to_dict(), "schedule": names, "missing": [], "machine": {}}
    store.create(tmp_path / "bench", header)
    return tmp_path / "bench"


@pytest.fixture
def write(folder: Path) -> Write:
    """write(launch, wrong=(sizes at which the MPI leaves wrong data))"""

    def finish(launch: Launch, wrong: tuple[int, ...] = (), **changes: Any) -> None:
        cells: list[dict[str, Any]] = []
        samples = {}
        for operation, contender in (("copy", "copy"), ("bcast", "direct"), ("bcast", "mpi")):
            for size in ASKED.sizes:
                key = f"{contender}{size}"
                cell = {"operation": operation, "bytes": size, "contender": contender}
                cell |= {"form": "plain"}
                if contender == "mpi" and size in wrong:
                    cells.append(cell | {"wrong": "3 wrong elements"})
                    continue
                cells.append(cell | {"samples": key, "warmup": 2, "group": 1})
                samples[key] = np.full((20, 2), 1e-6)
        with results.incoming(folder, launch.name) as place:
            asked = {**launch.to_dict(), **changes}
            result = {"format": FORMAT, "launch": asked, "cells": cells, "absent": {}}
            result |= {"environment": {}, "ranks": [{"emulated": False}]}
            (place / "result.json").write_text(json.dumps(result))
            np.savez(place / "samples.npz", **samples)
            results.accept(folder, launch.name, place)

    return finish


def notes(folder: Path) -> tuple[str, ...]:
    """All but how many launches are finished."""
    return tuple(note for note in store.load(folder).notes if "planned launches" not in note)


def test_every_median_has_its_setting(folder: Path, write: Write) -> None:
    write(LAUNCHES["default"])
    write(LAUNCHES["sm"])
    assert notes(folder) == ()
    settings = store.load(folder).medians.groupby("block")["setting"].agg(set)
    assert settings.tolist() == [{"default", "sm"}]


def test_a_bench_from_before_there_were_settings_is_read(folder: Path, write: Write) -> None:
    launch = LAUNCHES["default"]
    write(launch)
    path = folder / "launches" / f"{launch.name}.json"
    values = json.loads(path.read_text())
    for key in ("setting", "forms", "without"):
        del values["launch"][key]
    path.write_text(json.dumps(values))
    assert set(store.load(folder).medians["setting"]) == {"default"}
    assert notes(folder) == ()


def test_wrong_data_is_told_once_for_all_settings_alike(folder: Path, write: Write) -> None:
    write(LAUNCHES["default"], wrong=(8, 1024))
    write(LAUNCHES["sm"], wrong=(8, 1024))
    write(LAUNCHES["ucx"], wrong=(8,))
    assert notes(folder) == (
        "openmpi (ucx): plain Bcast of 8 bytes left wrong data, not counted",
        "openmpi (default, sm): plain Bcast of 8, 1,024 bytes left wrong data, not counted",
    )


def test_what_was_left_out_is_told_with_its_reason(folder: Path, write: Write) -> None:
    cell = LeftOut("mpi", "persistent", "bcast", 1024, "exit code 139")
    write(replace(LAUNCHES["sm"], without=(cell, replace(cell, bytes=8))))
    every = replace(cell, bytes=None, why="stood still for 60 s")
    write(replace(LAUNCHES["default"], without=(every, replace(every, contender="pickle"))))
    assert notes(folder) == (
        "openmpi, 2 ranks: persistent Bcast of any size left out once it failed: "
        "stood still for 60 s",
        "openmpi (sm), 2 ranks: persistent Bcast of 8, 1,024 bytes left out once it failed: "
        "exit code 139",
        "pickle beside openmpi, 2 ranks: persistent Bcast of any size left out once it failed: "
        "stood still for 60 s",
    )


def test_a_setting_that_was_given_up_is_named_and_one_that_went_on_is_not(
    folder: Path, write: Write
) -> None:
    for setting in ("ucx", "sm"):
        launch = LAUNCHES[setting]
        results.fail(folder, launch.name, launch.to_dict(), "exit code 1")
    write(LAUNCHES["sm"])
    assert notes(folder) == ("openmpi (ucx), 2 ranks: given up: exit code 1",)


def test_calls_known_to_be_broken_are_told_where_their_form_was_asked_for(folder: Path) -> None:
    """Not where only plain calls were measured."""
    for form, told in (("plain", 0), ("persistent", 1)):
        cells = [{"operation": "gather", "contender": "direct", "form": form, "bytes": 8}]
        launch = {"flavour": "impi", "peers": ["mpi"]}
        found = list(store._broken([{"launch": launch, "cells": cells}]))
        assert len(found) == told
