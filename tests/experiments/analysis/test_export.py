"""What is exported reads back as it was; OSU's tables are laid out as OSU prints them."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.analysis import export, reading
from experiments.analysis.reading import Campaign
from experiments.catalogue import spec
from experiments.model.launch import Cell
from experiments.results import store
from experiments.schedule.blocks import schedule

NUMBERS = [name for name in (*reading.COLUMNS, "begin_s") if name.endswith("_s")] + ["carried"]
"""Columns where an empty field is no number; elsewhere it is an empty name."""


def read(path: Path) -> pd.DataFrame:
    """A CSV or Parquet file with the values that were written."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, keep_default_na=False, na_values={name: [""] for name in NUMBERS})


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Two blocks of host and container, two sizes of two operations, with a plain copy each."""
    asked = spec.restrict(spec.load("quick"), sizes="1KiB,4KiB", blocks=2)
    folder = tmp_path / "campaign"
    blocks = schedule(asked, 1)
    names = [{"launches": [launch.name for launch in block.launches]} for block in blocks]
    header = {"name": "quick", "experiment": asked.to_dict(), "seed": 1, "schedule": names}
    store.create(folder, header | {"missing": []})
    rng = np.random.default_rng(1)
    for launch in (launch for block in blocks for launch in block.launches):
        cells, samples = [], {}
        asked_for = [cell for cell in launch.cells if cell.operation != "gather"]
        for number, cell in enumerate([Cell("copy", "mpi", "regular", "local", 1024), *asked_for]):
            samples[f"c{number}"] = rng.lognormal(-11, 0.3, size=(12, launch.ranks))
            cells.append(
                vars(cell)
                | {"samples": f"c{number}", "warmup": 2, "group": 1}
                | {"emulated": cell.kind == "hbw"}
            )
        cells += [vars(cell) | {"skipped": "no"} for cell in launch.cells if cell not in asked_for]
        environment = {"versions": {"mpi": "Open MPI v5.0.11"}}
        result = {"format": 2, "launch": launch.to_dict(), "cells": cells, "ranks": []}
        with store.incoming(folder, launch.name) as place:
            (place / "result.json").write_text(json.dumps(result | {"environment": environment}))
            np.savez(place / "samples.npz", **samples)
            store.accept(folder, launch.name, place)
    return reading.load(folder)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_every_cell_reads_back_as_it_was(campaign: Campaign, form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"new folder/cells.{form}"
    export.export(campaign, form, out)
    found = read(out)
    written = campaign.cells.drop(columns="turns")
    pd.testing.assert_frame_equal(found, written, check_exact=True, check_dtype=False)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_every_sample_reads_back_as_it_was(campaign: Campaign, form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"samples.{form}"
    export.export(campaign, form, out, raw=True)
    found = read(out)
    timed = found[~found["warmup"]].groupby([*export.NAMES, "iteration"], observed=True)
    medians = timed["seconds"].max().groupby(list(export.NAMES)).median()
    expected = campaign.cells.set_index(list(export.NAMES))["median_s"].sort_index()
    assert len(found) == len(campaign.cells) * 12 * 2
    pd.testing.assert_series_equal(medians, expected, check_names=False, check_exact=True)


def test_what_a_program_printed_over_its_ranks_is_no_ranks_sample() -> None:
    names = dict.fromkeys(export.NAMES, "x")
    printed = {"warmup": 1, "turn": 0, "columns": ["min", "mean", "max"]}
    found = export._long(names, printed, np.array([[1.0, 2, 4], [2, 3, 4]]))
    assert found["over_ranks"].tolist() == ["min", "mean", "max"] * 2
    assert set(found["rank"]) == {export.NO_RANK}
    own = export._long(names, {"warmup": 1, "turn": 0}, np.ones((2, 3)))
    assert set(own["over_ranks"]) == {""}
    assert own["rank"].tolist() == [0, 1, 2] * 2


def test_osus_average_is_the_mean_that_a_program_printed(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = campaign.cells.iloc[0][list(export.NAMES)].to_dict() | {"operation": "bcast"}
    printed = {"operation": "bcast", "warmup": 0, "columns": ["min", "mean", "max"]}
    rows = [(names, printed, np.array([[1e-6, 2e-6, 9e-6]]), None)]
    monkeypatch.setattr(export, "_measured", lambda folder, launch: rows)
    last = "".join(export.osu(campaign)).splitlines()[-1].split()
    assert last[1:4] == ["2.00", "1.00", "9.00"]


def test_every_sample_carries_its_turn() -> None:
    cell = {"warmup": 2, "turn": 3}
    names = dict.fromkeys(export.NAMES, "x")
    found = export._long(names, cell, np.ones((8, 2)))["turn"].tolist()
    assert found == [-1] * 4 + [0] * 6 + [1] * 6
    assert set(export._long(names, cell | {"turn": 0}, np.ones((8, 2)))["turn"]) == {-1}


def test_every_sample_carries_when_its_rank_began(campaign: Campaign, tmp_path: Path) -> None:
    cell, names = {"warmup": 0, "turn": 1}, dict.fromkeys(export.NAMES, "x")
    begins = np.array([[0.0, 1e-6], [2e-6, 3e-6]], np.float32)
    found = export._long(names, cell, np.ones((2, 2)), begins)
    assert found["begin_s"].tolist() == begins.ravel().tolist()
    export.export(campaign, "csv", tmp_path / "samples.csv", raw=True)
    assert read(tmp_path / "samples.csv")["begin_s"].isna().all(), "none was stored"


def test_parquet_carries_the_campaigns_own_words(campaign: Campaign, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export.export(campaign, "parquet", tmp_path / "cells.parquet")
    shown = parquet.read_schema(tmp_path / "cells.parquet").metadata[b"hbmcomm"]
    assert json.loads(shown) == campaign.header


def test_parquet_without_pyarrow_says_how_to_get_it_and_leaves_nothing(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        export.CannotExport, match=r"pip install .* --group parquet, or export with"
    ):
        export.export(campaign, "parquet", tmp_path / "x" / "cells.parquet")
    assert list((tmp_path / "x").iterdir()) == []


def test_what_has_no_place_in_a_format_is_refused(campaign: Campaign, tmp_path: Path) -> None:
    with pytest.raises(export.CannotExport, match="no place for raw samples"):
        export.export(campaign, "osu", tmp_path / "table.txt", raw=True)
    with pytest.raises(export.CannotExport, match="name a file"):
        export.export(campaign, "parquet", None)


def test_the_tables_are_laid_out_as_osu_prints_them(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    export.export(campaign, "osu", None)
    tables = capsys.readouterr().out.split("\n\n")
    arms, transports = set(campaign.cells["arm"]), set(campaign.cells["transport"])
    kinds, operations = set(campaign.cells["kind"]), set(campaign.cells["operation"])
    assert len(tables) == len(arms) * len(transports) * len(kinds) * len(operations)
    (table,) = [
        each
        for each in tables
        if "Broadcast" in each and "arm host, transport mpi, memory regular" in each
    ]
    title, shown, datatype, head, *rows = table.strip().splitlines()
    assert title == "# OSU MPI Broadcast Latency Test (measured by hbmcomm)"
    assert shown == (
        "# arm host, transport mpi, memory regular, Open MPI v5.0.11, 2 ranks, packed, local, "
        "isolated, cache warm, 2 launches"
    )
    assert datatype == "# Datatype: MPI_FLOAT."
    assert head == "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"
    for row in rows:
        assert re.fullmatch(r"\d+ +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +20", row)
        assert len(row) == len(head)
    assert [int(row.split()[0]) for row in rows] == [1024, 4096]


def test_osus_latencies_are_means_over_iterations_then_over_ranks(campaign: Campaign) -> None:
    chosen = {"operation": "bcast", "transport": "mpi", "kind": "regular", "bytes": 1024}
    kept = []
    for launch in campaign.launches:
        if launch["launch"]["arm"] == "host":
            with np.load(campaign.folder / "launches" / _file(launch)) as samples:
                kept += [
                    samples[cell["samples"]][2:]
                    for cell in launch["cells"]
                    if "skipped" not in cell and chosen.items() <= cell.items()
                ]
    own = np.concatenate(kept).mean(axis=0) * 1e6
    text = "".join(export.osu(campaign))
    head = "Broadcast Latency Test (measured by hbmcomm)\n# arm host, transport mpi, memory regular"
    table = text[text.index(head) :]
    row = table.splitlines()[4].split()
    assert [float(value) for value in row[1:4]] == pytest.approx(
        [own.mean(), own.min(), own.max()], abs=0.005
    )


@pytest.fixture
def emulated(campaign: Campaign) -> Campaign:
    """The same campaign, as if it had run on an emulated machine."""
    for path in (campaign.folder / "launches").glob("*.json"):
        launch = json.loads(path.read_text())
        launch["environment"]["machine"] = {"emulated": "gh200 (tcg)"}
        path.write_text(json.dumps(launch))
    return reading.load(campaign.folder)


@pytest.mark.parametrize("raw", [False, True])
def test_every_row_of_an_emulated_machine_says_so(
    emulated: Campaign, tmp_path: Path, raw: bool
) -> None:
    export.export(emulated, "csv", tmp_path / "cells.csv", raw=raw)
    assert set(read(tmp_path / "cells.csv")["emulated_machine"]) == {"gh200 (tcg)"}


def test_every_table_of_an_emulated_machine_says_so(emulated: Campaign) -> None:
    tables = "".join(export.osu(emulated)).split("\n\n")
    for table in tables:
        assert table.strip().splitlines()[2] == (
            "# Emulated machine gh200 (tcg): where ranks and pages are is real, times mean nothing."
        )


def test_on_a_real_machine_no_row_is_emulated(campaign: Campaign) -> None:
    assert set(campaign.cells["emulated_machine"]) == {"no"}
    assert "Emulated machine" not in "".join(export.osu(campaign))


def _file(launch: dict[str, dict[str, object]]) -> str:
    return f"{launch['launch']['block']:04d}-{launch['launch']['arm']}.npz"
