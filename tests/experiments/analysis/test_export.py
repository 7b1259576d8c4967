"""What is exported reads back as it was; OSU's tables are laid out as OSU prints them."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.analysis import export, reading
from experiments.analysis.campaign import Campaign
from experiments.results.result import CellResult

NUMBERS = [name for name in (*reading.COLUMNS, "begin_s") if name.endswith("_s")] + ["carried"]
"""Columns where an empty field is no number; elsewhere it is an empty name."""
ANY = dict.fromkeys(export.NAMES, "x")
CELL = CellResult("bcast", "imb", "regular", "local", 1024)


def read(path: Path) -> pd.DataFrame:
    """A CSV or Parquet file with the values that were written."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, keep_default_na=False, na_values={name: [""] for name in NUMBERS})


@pytest.fixture(scope="module")
def campaign(skipping_folder: Path) -> Campaign:
    """Two blocks of host and container, three sizes; cells in hbw are skipped."""
    return reading.load(skipping_folder)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_every_cell_reads_back_as_it_was(campaign: Campaign, form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"new folder/cells.{form}"
    export.export(campaign, form, out)
    cells = read(out)
    written = campaign.cells.drop(columns="turns")
    pd.testing.assert_frame_equal(cells, written, check_exact=True, check_dtype=False)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_every_sample_reads_back_as_it_was(campaign: Campaign, form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"samples.{form}"
    export.export(campaign, form, out, raw=True)
    samples = read(out)
    timed = samples[~samples["warmup"]].groupby([*export.NAMES, "iteration"], observed=True)
    medians = timed["seconds"].max().groupby(list(export.NAMES)).median()
    expected = campaign.cells.set_index(list(export.NAMES))["median_s"].sort_index()
    assert len(samples) == len(campaign.cells) * 40 * 2
    pd.testing.assert_series_equal(medians, expected, check_names=False, check_exact=True)


def test_what_a_program_printed_over_its_ranks_is_no_ranks_sample() -> None:
    printed = replace(CELL, warmup=1, columns=("min", "mean", "max"))
    samples = export._long(ANY, printed, np.array([[1.0, 2, 4], [2, 3, 4]]))
    assert samples["over_ranks"].tolist() == ["min", "mean", "max"] * 2
    assert set(samples["rank"]) == {export.NO_RANK}
    own = export._long(ANY, replace(CELL, warmup=1), np.ones((2, 3)))
    assert set(own["over_ranks"]) == {""}
    assert own["rank"].tolist() == [0, 1, 2] * 2


def test_every_sample_carries_its_turn_and_when_its_rank_began() -> None:
    cell, times = replace(CELL, warmup=2, turn=3), np.ones((8, 2))
    begins = np.linspace(0, 1e-6, 16, dtype=np.float32).reshape(8, 2)
    samples = export._long(ANY, cell, times, begins)
    assert samples["turn"].tolist() == [-1] * 4 + [0] * 6 + [1] * 6
    assert samples["begin_s"].tolist() == begins.ravel().tolist()
    none = export._long(ANY, replace(cell, turn=0), times)
    assert set(none["turn"]) == {-1} and none["begin_s"].isna().all()


def test_osus_average_is_the_mean_that_a_program_printed(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = campaign.cells.iloc[0][list(export.NAMES)].to_dict() | {"operation": "bcast"}
    printed = replace(CELL, columns=("min", "mean", "max"))
    rows = [(names, printed, np.array([[1e-6, 2e-6, 9e-6]]), None)]
    monkeypatch.setattr(export, "_measured", lambda folder, launch: rows)
    last = "".join(export.osu(campaign)).splitlines()[-1].split()
    assert last[1:4] == ["2.00", "1.00", "9.00"]


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
    for form in ("osu", "openmetrics"):
        with pytest.raises(export.CannotExport, match="no place for raw samples"):
            export.export(campaign, form, tmp_path / "text", raw=True)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(export.CannotExport, match="name a file"):
        export.export(campaign, "parquet", None)


def test_the_tables_are_laid_out_as_osu_prints_them(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    export.export(campaign, "osu", None)
    tables = capsys.readouterr().out.split("\n\n")
    assert set(campaign.cells["emulated_machine"]) == {"no"}
    assert not any("Emulated machine" in table for table in tables)
    arms, transports = set(campaign.cells["arm"]), set(campaign.cells["transport"])
    kinds, operations = set(campaign.cells["kind"]), set(campaign.cells["operation"])
    assert len(tables) == len(arms) * len(transports) * len(kinds) * len(operations)
    (table,) = [
        candidate
        for candidate in tables
        if "Broadcast" in candidate and "arm host, transport mpi, memory regular" in candidate
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
        assert re.fullmatch(r"\d+ +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +60", row)
        assert len(row) == len(head)
    assert [int(row.split()[0]) for row in rows] == [2**10, 2**16, 2**22]


def test_osus_latencies_are_means_over_iterations_then_over_ranks(campaign: Campaign) -> None:
    chosen = {"operation": "bcast", "transport": "mpi", "kind": "regular", "bytes": 1024}
    kept = []
    for launch in campaign.launches:
        if launch.launch.arm == "host":
            with np.load(campaign.folder / "launches" / f"{launch.name}.npz") as samples:
                kept += [
                    samples[cell.samples][10:]
                    for cell in launch.measured
                    if chosen.items() <= vars(cell).items()
                ]
    own = np.concatenate(kept).mean(axis=0) * 1e6
    text = "".join(export.osu(campaign))
    head = "Broadcast Latency Test (measured by hbmcomm)\n# arm host, transport mpi, memory regular"
    table = text[text.index(head) :]
    row = table.splitlines()[4].split()
    assert [float(value) for value in row[1:4]] == pytest.approx(
        [own.mean(), own.min(), own.max()], abs=0.005
    )


def test_every_row_and_every_table_of_an_emulated_machine_says_so(
    emulated_folder: Path, tmp_path: Path
) -> None:
    emulated = reading.load(emulated_folder)
    for raw in (False, True):
        export.export(emulated, "csv", tmp_path / "cells.csv", raw=raw)
        assert set(read(tmp_path / "cells.csv")["emulated_machine"]) == {"knl-snc4-flat (tcg)"}
    for table in "".join(export.osu(emulated)).split("\n\n"):
        assert table.strip().splitlines()[2] == (
            "# Emulated machine knl-snc4-flat (tcg): where ranks and pages are is real, times mean "
            "nothing."
        )


def test_a_spreadsheet_takes_no_text_for_a_formula() -> None:
    frame = pd.DataFrame({"name": ["=1+1", "@x", "plain", "-x"], "seconds": [-1.5, 2.0, 3.0, 4.0]})
    assert export.csv(frame).splitlines() == [
        "name,seconds",
        *("'=1+1,-1.5", "'@x,2.0", "plain,3.0", "'-x,4.0"),
    ]
