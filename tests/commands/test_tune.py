"""bench --tune from its flags to its folder and table, on real ranks."""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import hbmcomm
from commands import bench as command
from experiments.analysis import thresholds
from experiments.catalogue import spec
from experiments.console import Stages
from experiments.driver import campaign_file
from experiments.driver.campaign_file import Request
from experiments.model.experiment import Experiment, Timing
from experiments.model.trials import Cell, Place, Trial, trials
from experiments.results import store as results
from experiments.results.store import ResultsError
from experiments.schedule.blocks import schedule
from plots.draw import draw
from plots.html.report import report
from tests.launched import LAUNCH
from tests.sharing import MadeOnce
from tests.stored_launches import begin, finish

QUICK = Timing(time_cap=0.002, min_iterations=5, max_iterations=20)
TINY = replace(spec.load("tune"), measurement=QUICK)


def few(in_force: Sequence[hbmcomm.Threshold], place: Place) -> tuple[Trial, ...]:
    """One small cell of each trial that ordinary plans have."""
    planned = []
    for trial in trials(in_force, place):
        shortest = sorted(trial.cells, key=lambda cell: cell.bytes)[:1]
        long = any(cell.bytes >= 2**20 for cell in shortest)
        why = "too long" if long else trial.why
        planned.append(replace(trial, cells=() if long else tuple(shortest), why=why))
    return tuple(planned)


def asked(*trials: Trial, **changes: Any) -> Experiment:
    """TINY with these trials."""
    factors = replace(TINY.factors, trials=trials)
    return replace(TINY, factors=factors, launches=replace(TINY.launches, **changes))


@pytest.fixture(scope="module")
def tuned(made_once: MadeOnce) -> Path:
    """A folder of six launches."""

    def tune(folder: Path) -> None:
        with (
            contextlib.chdir(Path(__file__).parents[2]),
            mock.patch.object(campaign_file, "trials", few),
        ):
            command.measure(TINY, Request(folder / "out", seed=7), Stages(), as_json=True)

    return made_once("tuned", tune) / "out"


@pytest.mark.ranks
@pytest.mark.rare
def test_every_threshold_is_in_the_proposal_with_a_value_or_a_reason(tuned: Path) -> None:
    proposal = json.loads((tuned / command.PROPOSAL).read_text())
    rows = {row["variable"]: row for row in proposal["thresholds"]}
    assert list(rows) == [threshold.variable for threshold in hbmcomm.tuning(2)]
    for row in rows.values():
        assert (row["gain"] is not None) == (row["proposed"] != row["now"]) == (row["why"] == "")
    assert rows["HBMCOMM_STREAM_BYTES"]["why"] == "too long"
    assert proposal["exports"] == [
        f"export {name}={row['proposed']}"
        for name, row in rows.items()
        if row["proposed"] != row["now"]
    ]
    assert {len(comparison["ratios"]) for comparison in proposal["compared"]} == {6}
    assert all(
        comparison["low"] <= comparison["ratio"] <= comparison["high"]
        for comparison in proposal["compared"]
    )
    assert proposal["noise"] >= 0
    cells = results.read_result(tuned, "0000-host").cells
    eager = sorted(cell.transport for cell in cells if "EAGER" in cell.transport)
    assert eager == [f"direct HBMCOMM_EAGER_BYTES={value}" for value in (0, 32768)]


@pytest.mark.ranks
@pytest.mark.rare
def test_the_table_names_all_thresholds(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.show(command.read(tuned), as_json=False)
    printed = capsys.readouterr().out
    assert all(threshold.variable in printed for threshold in hbmcomm.tuning(2))
    assert "times are not measured" in printed
    assert "export HBMCOMM_" in printed or "nothing to change" in printed
    command.show(command.read(tuned), as_json=True)
    assert json.loads(capsys.readouterr().out)["question"]["ranks"] == 2


@pytest.mark.ranks
def test_each_value_is_in_force_on_its_communicator_alone(
    mpirun: Callable[..., Any], tmp_path: Path
) -> None:
    planned = trials(hbmcomm.tuning(3), Place(3, 1, 1))
    (launch,) = schedule(asked(*planned, ranks=(3,), blocks=1), 1)[0].launches
    (tmp_path / "launch.json").write_text(json.dumps(launch.to_dict()))
    program = Path(__file__).parent / "ranks" / "in_force.py"
    assert mpirun(program, 3, str(tmp_path)).output.count("ok") == 3


FETCH = Trial(
    *("HBMCOMM_FETCH_BYTES", "bytes", 2**17, 4096, "from", (1, 2**62)),
    (Cell("gather", 2**16, 2**16), Cell("gather", 2**17, 2**17)),
)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Six launches in which the way with FETCH is twice as fast everywhere."""
    return described(tmp_path / "results", "works")


def described(path: Path, cma: str) -> Path:
    """Such a folder, of a kernel with these single copies."""
    launches = [replace(LAUNCH, block=block, arm="host") for block in range(6)]
    planned = [{"block": launch.block, "launches": [launch.name]} for launch in launches]
    begin(path, asked(FETCH), schedule=planned, machine={})
    times = dict(zip(FETCH.contenders, (1.0, 1.0, 2.0), strict=True))
    assert FETCH.values == (FETCH.with_way, FETCH.without_way)
    for launch in launches:
        cells, samples = [], {}
        for cell, (contender, seconds) in product(FETCH.cells, times.items()):
            key = f"c{len(cells)}"
            samples[key] = np.full((4, 2), seconds * (1 + 0.001 * launch.block))
            text = {"transport": contender, "buffers": "arena", "emulated": False, "samples": key}
            text |= {"kind": "regular", "locality": "local"}
            numbers = {"bytes": cell.bytes, "warmup": 0, "group": 1, "turn": 2}
            cells.append(text | numbers | {"operation": cell.operation, "contest": cell.bytes})
        facts = {"versions": {}, "datapath": {"cma": cma}}
        finish(path, launch, cells, samples, environment=facts)
    return path


def test_a_folder_is_read_to_export_lines_and_notes(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = command.read(stored)
    assert thresholds.tuned(campaign).exports == ["export HBMCOMM_FETCH_BYTES=65536"]
    command.show(campaign, as_json=False)
    printed = capsys.readouterr().out
    assert "2.00× as fast (2.00 to 2.00) in Gather of 64 KiB" in printed
    assert "export HBMCOMM_FETCH_BYTES=65536\n" in printed
    assert "HBMCOMM_FETCH_BYTES=131072" in printed, "the environment changed it before"


def test_after_an_interrupt_what_finished_is_shown_and_nothing_proposed(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stored / "launches/0005-host.json").unlink()
    command.show(command.read(stored), as_json=False)
    printed = capsys.readouterr().out
    assert "5 of 6 planned launches are finished" in printed
    assert "nothing can be proposed yet: that takes 6 launches" in printed


def test_there_are_no_figures_and_no_page_of_thresholds(stored: Path) -> None:
    for drawn in (draw, report):
        with pytest.raises(ResultsError, match=r"print them: \./inv bench --results"):
            drawn(stored, stored.parent)


def test_a_way_that_the_kernel_refuses_is_not_proposed(tmp_path: Path) -> None:
    (only,) = thresholds.tuned(command.read(described(tmp_path, "EPERM"))).proposals
    assert not only.changes
    assert only.why == thresholds.NO_FETCH.format("EPERM")


def test_a_launch_without_what_it_was_asked_is_named(stored: Path) -> None:
    campaign = command.read(stored)
    lacking = replace(campaign, cells=campaign.cells[campaign.cells["transport"] == "direct"])
    with pytest.raises(ResultsError, match="lack what was asked of them"):
        thresholds.tuned(lacking)


NOTHING_SAID = {"ranks": "", "blocks": "", "out": "", "seed": "", "ops": "", "private": False}


def test_nothing_said_is_two_ranks_with_an_interval() -> None:
    usual = command.thresholds(NOTHING_SAID).launches
    assert (usual.ranks, usual.blocks) == ((2,), 6)
    more = command.thresholds(NOTHING_SAID | {"ranks": "16", "blocks": "10"}).launches
    assert (more.ranks, more.blocks) == ((16,), 10)


def test_what_is_asked_survives_its_stored_form() -> None:
    planned = asked(*trials(hbmcomm.tuning(2), Place(2, 1, 1)))
    stored = json.loads(json.dumps(planned.to_dict()))
    assert Experiment.from_dict(stored, "campaign.json") == planned


def test_a_launch_has_the_cells_of_all_trials_each_once() -> None:
    planned = trials(hbmcomm.tuning(2), Place(2, 1, 1))
    cells = schedule(asked(*planned, blocks=1), 3)[0].launches[0].cells
    assert len(set(cells)) == len(cells)
    assert {(cell.operation, cell.bytes, cell.transport) for cell in cells} == {
        (cell.operation, cell.bytes, contender)
        for trial in planned
        for cell in trial.cells
        for contender in trial.contenders
    }
