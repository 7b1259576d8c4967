"""bench --tune from its flags to its folder and table, on real ranks."""

import contextlib
import json
import signal
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import hbmcomm
from experiments.bench import tune as command
from experiments.bench import tune_store
from experiments.bench.trials import Cell, Place, Trial, trials
from experiments.bench.tune_schedule import Question, ask, schedule
from experiments.console.stages import Stages
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Measurement
from experiments.model.launch import FORMAT, Launch
from experiments.results import store as results
from experiments.results.store import ResultsError
from tests.experiments.bench.processes import ROOT, interrupted, started
from tests.launched import LAUNCH
from tests.sharing import MadeOnce

QUICK = Measurement(time_cap=0.002, min_iterations=5, max_iterations=20)
TINY = Question(ranks=2, blocks=6, measurement=QUICK)


def few(
    found: Sequence[hbmcomm.Threshold], place: Place
) -> tuple[tuple[Trial, ...], dict[str, str]]:
    """One small cell of each trial that ordinary plans have."""
    planned, left_out = trials(found, place)
    shortest = {each: min(each.cells, key=lambda cell: cell.bytes) for each in planned}
    quick = {each: cell for each, cell in shortest.items() if cell.bytes < 2**20}
    return (
        tuple(replace(each, cells=(cell,)) for each, cell in quick.items()),
        left_out | {each.variable: "too long" for each in planned if each not in quick},
    )


@pytest.fixture(scope="module")
def tuned(made_once: MadeOnce) -> Path:
    """A folder of six launches."""

    def tune(folder: Path) -> None:
        with contextlib.chdir(ROOT), mock.patch.object(command, "trials", few):
            command.run(TINY, folder / "out", 7, Stages(), as_json=True)

    return made_once("tuned", tune) / "out"


@pytest.mark.ranks
@pytest.mark.rare
def test_every_threshold_is_in_the_proposal_with_a_value_or_a_reason(tuned: Path) -> None:
    found = json.loads((tuned / tune_store.PROPOSAL).read_text())
    rows = {row["variable"]: row for row in found["thresholds"]}
    assert list(rows) == [each.variable for each in hbmcomm.tuning(2)]
    for row in rows.values():
        assert (row["gain"] is not None) == (row["proposed"] != row["now"]) == (row["why"] == "")
    assert rows["HBMCOMM_STREAM_BYTES"]["why"] == "too long"
    assert found["exports"] == [
        f"export {name}={row['proposed']}"
        for name, row in rows.items()
        if row["proposed"] != row["now"]
    ]
    assert {len(each["ratios"]) for each in found["compared"]} == {6}
    assert all(each["low"] <= each["ratio"] <= each["high"] for each in found["compared"])
    assert found["noise"] >= 0


@pytest.mark.ranks
@pytest.mark.rare
def test_every_sample_is_stored(tuned: Path) -> None:
    assert len(results.finished(tuned)) == 6
    launch = results.read_launch(tuned, "0000-tune")
    samples = results.read_samples(tuned / "launches" / "0000-tune.npz")
    eager = [each["transport"] for each in launch["cells"] if "EAGER" in each["transport"]]
    assert sorted(eager) == [f"direct HBMCOMM_EAGER_BYTES={value}" for value in (0, 32768)]
    for cell in launch["cells"]:
        assert samples[cell["samples"]].shape[1] == 2
        assert (samples[cell["samples"]] > 0).all()
        assert 5 <= len(samples[cell["samples"]]) - cell["warmup"] <= 20
    assert {"versions", "hashes", "machine", "datapath"} <= set(launch["environment"])
    assert tune_store.load(tuned).header["seed"] == 7


@pytest.mark.ranks
@pytest.mark.rare
def test_the_table_names_all_thresholds(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.show(tuned, as_json=False)
    printed = capsys.readouterr().out
    assert all(each.variable in printed for each in hbmcomm.tuning(2))
    assert "times are not measured" in printed
    assert "export HBMCOMM_" in printed or "nothing to change" in printed
    command.show(tuned, as_json=True)
    assert json.loads(capsys.readouterr().out)["question"]["ranks"] == 2


@pytest.mark.ranks
def test_each_value_is_in_force_on_its_communicator_alone(
    mpirun: Callable[..., Any], tmp_path: Path
) -> None:
    planned, _ = trials(hbmcomm.tuning(3), Place(3, 1, 1))
    (launch,) = schedule(Question(ranks=3, blocks=1), planned, "regular", 1)
    (tmp_path / "launch.json").write_text(json.dumps(launch.to_dict()))
    program = Path(__file__).parent / "ranks" / "in_force.py"
    assert mpirun(program, 3, str(tmp_path)).output.count("ok") == 3


BENCH = """
import sys
from pathlib import Path
from invoke.context import Context
from invoke.exceptions import Exit
from commands.exits import reports_errors
from experiments.bench import command
from experiments.console.stages import Stages
from tests.experiments.bench.test_tune import TINY, few

command.trials = few

def bench(context, out):
    command.run(TINY, out, 7, Stages(), as_json=False)

try:
    reports_errors(bench)(Context(), Path(sys.argv[1]))
except Exit as ended:
    print(ended.message, file=sys.stderr)
    sys.exit(ended.code)
"""
"""The command with a short plan; test_bench.py interrupts one as a user starts it."""


@pytest.mark.rare
@pytest.mark.ranks
def test_an_interrupt_keeps_and_shows_what_finished(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = started("-c", BENCH, str(out))
    printed = interrupted(process, out, 1, signal.SIGINT, patience=120)  # as a terminal does
    assert "1 of 6 planned launches are finished" in printed
    assert "nothing can be proposed yet: that takes 6 launches" in printed


def described(path: Path, trial: Trial, ratio: float, **environment: str) -> None:
    """A folder of six launches in which a way of a trial is so much faster everywhere."""
    threshold = {"variable": trial.variable, "unit": trial.unit, "value": trial.now}
    results.create(
        path,
        {
            "thresholds": [threshold | {"default": 4096}],
            "trials": [asdict(trial)],
            "left_out": {},
            "schedule": [f"{block:04d}-tune" for block in range(6)],
            "machine": {},
            "question": {"ranks": 2},
        },
        tune_store.HEADER,
    )
    times = dict(zip(trial.contenders, (1.0, 1.0, ratio), strict=True))
    assert trial.values == (trial.with_way, trial.without_way)
    for block in range(6):
        name = f"{block:04d}-tune"
        cells, samples = [], {}
        for cell, (contender, seconds) in product(trial.cells, times.items()):
            key = f"c{len(cells)}"
            samples[key] = np.full((4, 2), seconds * (1 + 0.001 * block))
            text = {"transport": contender, "buffers": "arena", "emulated": False, "samples": key}
            text |= {"kind": "regular", "locality": "local"}
            numbers = {"bytes": cell.bytes, "warmup": 0, "group": 1, "turn": 2}
            cells.append(text | numbers | {"operation": cell.operation})
        asked = replace(LAUNCH, block=block, arm="tune").to_dict()
        launch = {"format": FORMAT, "launch": asked, "cells": cells, "ranks": []}
        launch |= {"environment": {"versions": {}, "datapath": environment}}
        with results.incoming(path, name) as place:
            results.write_json(place / "result.json", launch)
            np.savez(place / "samples.npz", **samples)
            results.accept(path, name, place)


FETCH = Trial(
    *("HBMCOMM_FETCH_BYTES", "bytes", 2**17, "from", (1, 2**62)),
    (Cell("gather", 2**16, 2**16), Cell("gather", 2**17, 2**17)),
)


def test_a_folder_is_read_to_export_lines_and_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described(tmp_path, FETCH, 2.0, cma="works")
    found = tune_store.load(tmp_path)
    assert found.exports == ["export HBMCOMM_FETCH_BYTES=65536"]
    command.show(tmp_path, as_json=False)
    printed = capsys.readouterr().out
    assert "2.00× as fast (2.00 to 2.00) in Gather of 64 KiB" in printed
    assert "export HBMCOMM_FETCH_BYTES=65536\n" in printed
    assert "HBMCOMM_FETCH_BYTES=131072" in printed, "the environment changed it before"


def test_a_way_that_the_kernel_refuses_is_not_proposed(tmp_path: Path) -> None:
    described(tmp_path, FETCH, 2.0, cma="EPERM")
    (only,) = tune_store.load(tmp_path).proposals
    assert not only.changes
    assert only.why == tune_store.NO_FETCH.format("EPERM")


def test_a_folder_with_results_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text("{}")
    with pytest.raises(ResultsError, match=r"has campaign\.json; name a new folder"):
        command.run(TINY, tmp_path, 1, Stages(), as_json=False)


def test_nothing_said_is_two_ranks_with_an_interval() -> None:
    asked = ask(64, "", None, {})
    assert (asked.ranks, asked.blocks) == (2, 6)
    assert ask(64, "16", 10, {"--ops": "", "--private": False}).ranks == 16


@pytest.mark.parametrize(
    ("ranks", "others", "shown"),
    [
        ("2,4", {}, "--tune takes one number of ranks"),
        ("1", {}, "a collective needs 2 ranks or more"),
        ("100000", {}, "this machine has 2 cores"),
        ("many", {}, "ranks 'many' do not parse"),
        ("", {"--ops": "Bcast"}, "--ops: not with --tune, which measures transport direct"),
        ("", {"--peers": "mpich", "--private": True}, "--peers, --private: not with --tune"),
    ],
)
def test_flags_that_cannot_be_meant_are_named(
    ranks: str, others: dict[str, str | bool], shown: str
) -> None:
    with pytest.raises(ExperimentsError, match=shown):
        ask(2, ranks, None, others)


def test_launches_hold_all_cells_in_an_order_of_their_own_and_survive_their_file() -> None:
    planned, _ = trials(hbmcomm.tuning(2), Place(2, 1, 1))
    first, second = schedule(Question(blocks=2), planned, "regular", 3)
    assert first.cells != second.cells
    assert sorted(map(str, first.cells)) == sorted(map(str, second.cells))
    assert Launch.from_dict(json.loads(json.dumps(first.to_dict()))) == first
    assert schedule(Question(blocks=2), planned, "regular", 3) == (first, second)
