"""A results folder: written whole or not at all, read back, and refused when it is torn."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analysis import ratios, reading
from experiments.analysis.campaign import Campaign
from experiments.catalogue import spec
from experiments.model.errors import ExperimentsError
from experiments.model.launch import FORMAT, Block, Cell, Launch
from experiments.results import store
from experiments.results.formats import OtherFormat
from experiments.results.store import ResultsError
from experiments.schedule.blocks import alone as schedule_alone
from experiments.schedule.blocks import schedule
from tests import stored_launches
from tests.launched import LAUNCH

TINY_CELL = Cell("bcast", "direct", "regular", "local", 1024)
TINY = spec.restrict(spec.load("quick"), sizes="1KiB,4KiB", blocks=2)


def begin(folder: Path) -> tuple[Block, ...]:
    blocks = schedule(TINY, 1)
    stored_launches.begin(folder, TINY, blocks)
    return blocks


def finish(folder: Path, launch: Launch, seconds: float = 1e-5, mpi: str = "Open MPI 5") -> None:
    """Write what the harness would have written for a launch."""
    cells: list[dict[str, Any]] = []
    samples: dict[str, np.ndarray] = {}
    copies = {(cell.kind, cell.bytes) for cell in launch.cells}
    every = [Cell("copy", "mpi", kind, "local", size) for kind, size in sorted(copies)]
    for number, cell in enumerate([*every, *launch.cells]):
        key = f"c{number}"
        half = np.full((30, launch.ranks), seconds / 2)
        half[10:, 1] = seconds
        samples |= {key: half, f"{key}.begin": np.tile(np.float32([0, 3e-6]), (30, 1))}
        cells.append(
            vars(cell)
            | {"samples": key, "warmup": 10, "group": 1, "emulated": cell.kind == "hbw"}
            | {"begins": f"{key}.begin"}
        )
    environment = {"versions": {"mpi": mpi}}
    stored_launches.finish(folder, launch, cells, samples, environment=environment)


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """The only finished one of a campaign."""
    first = begin(tmp_path)[0].launches[0]
    finish(tmp_path, first)
    return first


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign of which one launch is finished."""
    folder = tmp_path_factory.mktemp("loaded")
    finish(folder, begin(folder)[0].launches[0])
    return reading.load(folder)


def change(path: Path, **values: object) -> None:
    """Other values for keys of a JSON file."""
    store.write_json(path, store.read_json(path) | values)


def test_a_finished_campaign_reads_back_one_row_per_launch_and_cell(tmp_path: Path) -> None:
    launches = [launch for block in begin(tmp_path) for launch in block.launches]
    for launch in launches:
        finish(tmp_path, launch)
    campaign = reading.load(tmp_path)
    assert list(campaign.cells.columns) == list(reading.COLUMNS)
    assert len(campaign.cells) == len(launches) * len(launches[0].cells)
    assert campaign.experiment == TINY
    assert "copy" not in set(campaign.cells["operation"])


def test_plain_copies_are_kept_apart_as_controls_whatever_came_first(loaded: Campaign) -> None:
    controls, (result,) = loaded.controls, loaded.launches
    assert list(controls.columns) == list(reading.COLUMNS)
    assert set(controls["operation"]) == {"copy"}
    assert set(controls["transport"]) == {"none"}
    assert len(controls) == len({(cell.kind, cell.bytes) for cell in result.launch.cells})


def test_the_time_is_the_maximum_over_ranks_and_the_warm_up_is_left_out(loaded: Campaign) -> None:
    cells = loaded.cells
    assert (cells["median_s"] == 1e-5).all()
    assert (cells["n"] == 20).all()
    assert cells["p99_s"].isna().all()


def test_the_skew_is_from_the_first_ranks_begin_to_the_last_ones(
    tmp_path: Path, launch: Launch, loaded: Campaign
) -> None:
    assert loaded.cells["skew_s"].to_numpy() == pytest.approx(3e-6)
    path = tmp_path / "launches" / f"{launch.name}.json"
    older = store.read_json(path)
    for cell in older["cells"]:
        del cell["begins"]
    store.write_json(path, older)
    assert reading.load(tmp_path).cells["skew_s"].isna().all()


def test_the_reference_arm_alone_is_kept_apart_and_compared_with_itself(tmp_path: Path) -> None:
    block = begin(tmp_path)[0]
    for launch in block.launches:
        finish(tmp_path, launch)
    without = reading.load(tmp_path)
    extra = schedule_alone(block)
    assert extra is not None
    finish(tmp_path, extra, seconds=0.8e-5)
    campaign = reading.load(tmp_path)
    assert campaign.warnings == without.warnings
    assert campaign.cells.equals(without.cells) and campaign.controls.equals(without.controls)
    assert [result.launch.arm for result in campaign.launches] == sorted(
        launch.arm for launch in block.launches
    )
    assert len(campaign.alone) == len(extra.cells)
    effect = ratios.company_ratio(campaign.cells, campaign.alone)
    assert len(effect) == len(extra.cells)
    assert effect["ratio"].tolist() == pytest.approx([1.25] * len(effect))
    assert ratios.company_ratio(without.cells, without.alone).empty
    other = campaign.alone.assign(barrier="another")
    assert ratios.company_ratio(campaign.cells, other).empty


def test_a_transport_over_private_arrays_has_one_name_of_its_own(tmp_path: Path) -> None:
    launch = begin(tmp_path)[0].launches[0]
    mpi = [cell for cell in launch.cells if cell.transport == "mpi" and cell.kind == "regular"]
    both = tuple(replace(cell, buffers=b) for cell in mpi for b in ("arena", "private"))
    finish(tmp_path, replace(launch, cells=both))
    cells = reading.load(tmp_path).cells
    assert set(cells["transport"]) == {"mpi", "mpi-private"}
    paired = ratios.paired_ratio(cells, "transport", "mpi-private", "mpi")
    assert len(paired) == len(mpi)
    assert (paired["ratio"] == 1).all()


def test_the_bound_is_the_traffic_at_the_copy_rate_of_the_same_launch(loaded: Campaign) -> None:
    cells = loaded.cells.set_index("operation")
    assert cells.loc["allreduce", "bound_s"].tolist() == pytest.approx([1e-5] * 12)
    assert cells.loc["bcast", "bound_s"].tolist() == pytest.approx([0.5e-5] * 12)


def test_what_a_reader_must_know_is_among_the_warnings(loaded: Campaign) -> None:
    shown = " ".join(loaded.warnings)
    assert "1 of 10 planned launches are finished" in shown
    assert "hbw is emulated" in shown
    assert "2 paired blocks" in shown
    assert "signed-rank p to be had is 0.500" in shown


def test_a_campaign_is_never_begun_over_another_or_among_other_files(tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(ResultsError, match="already holds a campaign; pass --resume"):
        begin(tmp_path)
    other = tmp_path / "other"
    store.refuse_existing(other)
    other.mkdir()
    (other / ".hidden").touch()
    store.refuse_existing(other)
    (other / "thesis.tex").touch()
    with pytest.raises(ResultsError, match=r"is not empty: it has thesis\.tex; name a new folder"):
        store.refuse_existing(other)


def test_a_launch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(KeyboardInterrupt), store.incoming(tmp_path, "0000-host") as place:
        (place / "result.json").write_text("{}")
        raise KeyboardInterrupt
    assert store.finished(tmp_path) == set()
    assert not (tmp_path / "incoming").exists()


def test_a_launch_without_a_result_is_not_taken_in(tmp_path: Path) -> None:
    begin(tmp_path)
    with store.incoming(tmp_path, "0000-host") as place:
        with pytest.raises(ResultsError, match="wrote no result"):
            store.accept(tmp_path, "0000-host", place)
        (place / "result.json").write_text("{}")
        (place / "samples.npz").write_bytes(b"PK torn")
        with pytest.raises(ResultsError, match=r"cannot be read \(.*\); complete the campaign"):
            store.accept(tmp_path, "0000-host", place)
    assert store.finished(tmp_path) == set()


def test_what_ranks_wrote_wrongly_is_not_taken_in(tmp_path: Path) -> None:
    begin(tmp_path)
    cell = vars(TINY_CELL) | {"samples": "c0", "warmup": 1, "group": 1, "emulated": False}
    result = {"format": FORMAT, "launch": LAUNCH.to_dict(), "cells": [cell], "ranks": []}
    result["environment"] = {"versions": {}}
    with store.incoming(tmp_path, LAUNCH.name) as place:
        np.savez(place / "samples.npz", c0=np.ones((3, 2)))
        for wrong, text in (
            ({"environment": []}, r"environment holds \[\], and must be a table"),
            ({"cells": {"a": 1}}, "cells holds .*, and must be a list"),
            ({"launch": 5}, "launch holds 5, and must be a table"),
            ({"company": [1]}, r"company\[0\] holds 1, and must be text"),
            ({"command": "a\x1b"}, "command holds .*, with characters that cannot be printed"),
            ({"launch": LAUNCH.to_dict() | {"arm": "other"}}, "launch holds the launch 0000-other"),
            ({"launch": LAUNCH.to_dict() | {"ranks": 3}}, "has 2 columns of samples, and not 3"),
            ({"format": 9}, "is of format 9"),
        ):
            (place / "result.json").write_text(json.dumps(result | wrong))
            with pytest.raises(ExperimentsError, match=text):
                store.accept(tmp_path, LAUNCH.name, place)
        (place / "result.json").unlink()
        os.mkfifo(place / "result.json")
        with pytest.raises(ResultsError, match="it is not a plain file"):
            store.accept(tmp_path, LAUNCH.name, place)
        (place / "result.json").unlink()
        (place / "result.json").write_text(json.dumps(result))
        store.accept(tmp_path, LAUNCH.name, place)
    assert store.finished(tmp_path) == {LAUNCH.name}


def test_a_folder_that_is_missing_empty_or_no_results_is_reported_apart(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="there is no results folder"):
        reading.load(tmp_path / "nowhere")
    with pytest.raises(ResultsError, match=r"holds no campaign\.json"):
        reading.load(tmp_path)
    begin(tmp_path)
    with pytest.raises(ResultsError, match=r"no finished launch yet.*--resume"):
        reading.load(tmp_path)


def test_a_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    for version, text in (
        (FORMAT + 1, f"is of format {FORMAT + 1}, .* reads formats up to {FORMAT}: take a newer"),
        (1, "is of format 1, .* reads formats from 2: take the version that wrote it"),
        ("2", "names no format"),
    ):
        change(tmp_path / "campaign.json", format=version)
        with pytest.raises(OtherFormat, match=text):
            reading.load(tmp_path)


def test_a_launch_of_a_newer_version_is_refused_by_its_name(tmp_path: Path, launch: Launch) -> None:
    change(tmp_path / "launches" / f"{launch.name}.json", format=FORMAT + 1)
    with pytest.raises(OtherFormat, match=rf"{launch.name}\.json is of format {FORMAT + 1}"):
        reading.load(tmp_path)


def test_launches_that_hold_different_mpis_are_refused(tmp_path: Path) -> None:
    one, other, *_ = sorted(begin(tmp_path)[0].launches, key=lambda launch: launch.name)
    finish(tmp_path, one)
    finish(tmp_path, other, mpi="MPICH 4")
    shown = rf"different MPIs \(Open MPI 5 in {one.name}, MPICH 4 in {other.name}\)"
    with pytest.raises(ResultsError, match=shown):
        reading.load(tmp_path)


@pytest.mark.usefixtures("launch")
def test_a_header_that_lacks_a_key_is_refused(tmp_path: Path) -> None:
    header = store.read_json(tmp_path / "campaign.json")
    for key in ("name", "experiment", "seed", "schedule"):
        rest = {name: value for name, value in header.items() if name != key}
        store.write_json(tmp_path / "campaign.json", rest)
        with pytest.raises(ResultsError, match=rf"campaign\.json lacks {key}; measure again"):
            reading.load(tmp_path)


def test_a_truncated_file_is_named(tmp_path: Path, launch: Launch) -> None:
    for ending in ("npz", "json"):
        path = tmp_path / "launches" / f"{launch.name}.{ending}"
        whole = path.read_bytes()
        path.write_bytes(whole[:100])
        with pytest.raises(ResultsError, match=rf"{launch.name}\.{ending} .*--resume") as refused:
            reading.load(tmp_path)
        assert f"delete {launch.name}.json and complete" in str(refused.value)
        path.write_bytes(whole)
    path.unlink()
    assert store.finished(tmp_path) == set()  # so that --resume measures it again
    (tmp_path / "campaign.json").write_text('{"format": 2')
    with pytest.raises(ResultsError, match=r"campaign\.json cannot be read"):
        reading.load(tmp_path)
