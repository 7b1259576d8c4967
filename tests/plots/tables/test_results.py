"""Tables: the same numbers as CSV and in LaTeX."""

import io
from typing import Any

import pandas as pd
import pytest

from experiments.analysis.campaign import Campaign
from experiments.analysis.statistics import CONTAINER
from experiments.model.quantities import NOTHING, ratio_text
from experiments.results.result import Result
from plots.contents import tables
from plots.tables.table import Table, escape
from tests.campaigns import changed, find
from tests.launched import make_launch


def table(campaign: Campaign, name: str) -> Table:
    (only,) = (grid for grid in tables(campaign) if grid.name == name)
    return only


def column(table: Table, head: str) -> list[str]:
    return [row[table.head.index(head)] for row in table.rows]


def test_there_is_a_table_behind_every_figure() -> None:
    names = " ".join(grid.name for grid in tables(find()))
    assert names == "paper times transport speedup container groups tails twins"
    campaign = find(bindings=("packed", "spread"), blocks=2)
    assert "placement" in [grid.name for grid in tables(campaign)]
    campaign = find(arms=("host", "host-again", "imb"), mpis=("impi",), blocks=2)
    assert "python" in [grid.name for grid in tables(campaign)]


def test_a_placement_that_is_compared_names_both_its_levels() -> None:
    both = find(bindings=("packed", "spread"), localities=("local", "remote"), blocks=2)
    placement = table(both, "placement")
    levels = (column(placement, head) for head in ("factor", "binding", "locality"))
    assert set(zip(*levels, strict=True)) == {
        ("binding", "spread over packed", "local"),
        ("binding", "spread over packed", "remote"),
        ("locality", "packed", "remote over local"),
        ("locality", "spread", "remote over local"),
    }


def test_bindings_are_not_said_to_share_a_block() -> None:
    shown = "paired within a block (of bindings the n-th block of one with the n-th of the other),"
    bound = find(bindings=("packed", "spread"), blocks=1)
    assert shown in table(bound, "placement").caption
    assert "paired within a block," in table(bound, "transport").caption
    distant = find(localities=("local", "remote"), blocks=1)
    assert "paired within a block," in table(distant, "placement").caption


def test_a_row_knows_its_cell() -> None:
    container = table(find(), "container")
    shown = [ratio_text(container.data.loc[cell, "ratio"]) for cell in container.cells]
    assert shown == column(container, "ratio")


def test_a_ratio_stands_with_its_verdict() -> None:
    container = table(find(), "container")
    assert set(column(container, "verdict")) == {"differs", "bounded"}
    assert not container.numeric[container.head.index("verdict")]


@pytest.mark.parametrize("name", ["times", "transport", "speedup", "container"])
def test_a_csv_reads_back_as_it_was(name: str) -> None:
    data = table(find(), name).data
    back = pd.read_csv(io.StringIO(table(find(), name).csv()))
    levels = [key for key in (*CONTAINER, "setting") if key in back]
    # the host has no container's levels, and only a bench's MPI has a setting
    back[levels] = back[levels].astype(object).fillna("")
    pd.testing.assert_frame_equal(back, data, check_dtype=False, check_exact=True)


def test_rows_hold_units_and_intervals() -> None:
    times = table(find(arms=("host",), transports=("mpi",), kinds=("regular",)), "times")
    first = dict(zip(times.head, times.rows[0], strict=True))
    assert (first.pop("operation"), first.pop("message per rank")) == ("Bcast", "1 KiB")
    assert (first.pop("group"), first.pop("n"), first.pop("launches")) == ("1", "1200", "6")
    assert first.pop("bus").endswith(" GB/s") and first.pop("skew") == NOTHING
    timed = {"median", "95 % from", "to", "p95", "p99", "memory bound"}
    assert first.keys() == timed and all(text.endswith("s") for text in first.values())


def test_what_never_varies_stands_in_the_caption() -> None:
    speedup = table(find(), "speedup")
    assert "kind" not in speedup.head
    assert "kind hbw (emulated)" in speedup.caption
    assert "cadence isolated" in speedup.caption


def test_rows_are_in_the_order_of_the_figures() -> None:
    rows = table(find(), "times").rows
    assert [row[0] for row in rows] == ["host"] * 72 + ["docker-tuned-one"] * 72
    assert list(dict.fromkeys(row[1] for row in rows)) == ["Bcast", "Gather", "Allreduce"]
    assert [row[4] for row in rows[:4]] == ["1 KiB", "16 KiB", "256 KiB", "4 MiB"]


def test_an_interval_that_is_not_known_is_a_dash() -> None:
    container = table(find(blocks=1), "container")
    assert set(column(container, "95 % interval")) == {"–"}


def test_a_group_has_one_ratio_for_all_its_sizes() -> None:
    groups = table(find(kinds=("regular",)), "groups")
    assert groups.head[-5:] == ["verdict", "widest", "sizes", "blocks", "p"]
    assert len(groups.rows) == 3 * 3  # operations, transports
    assert {row[-3] for row in groups.rows} == {"4"}
    assert {row[-2] for row in groups.rows} == {"6"}
    assert all(" at 4 MiB" in row[-4] for row in groups.rows if row[0] == "Bcast")


def test_ratios_stand_with_their_corrected_p() -> None:
    container = table(find(), "container")
    assert container.head[-3:] == ["p", "p (Holm)", "least"]
    assert {row[-1] for row in container.rows} == {"0.125"}  # 6 blocks, 4 sizes


def test_latex_uses_booktabs_and_escapes() -> None:
    text = table(find(kinds=("regular", "hbw_interleave"), emulated=False), "times").latex()
    assert r"\toprule" in text and r"\midrule" in text and r"\bottomrule" in text
    assert r"hbw\_interleave" in text
    assert r"95 \%" in text
    assert r"\textmu{}s" in text
    assert text.isascii()
    columns = {
        line.count(" & ") for line in text.splitlines() if line.endswith(r"\\") and " & " in line
    }
    assert len(columns) == 1


def test_every_special_character_of_latex_is_escaped() -> None:
    assert escape(r"a_b 5% #1 ~^{}\&$<>") == (
        r"a\_b 5\% \#1 \textasciitilde{}\textasciicircum{}\{\}\textbackslash{}\&\$"
        r"\textless{}\textgreater{}"
    )


@pytest.fixture
def pages() -> Table:
    """The table of two launches' pages; in one a rank's have strayed."""
    usual: dict[str, Any] = {"kinds": ("hbw", "hbw_preferred"), "localities": ("local",)}
    moved = {("hbw_preferred", "local", 3): {3: 2**20, 5: 2**20}}
    launches = [make_launch(block=n, **usual, placed=None if n else moved) for n in range(3)]
    campaign = find(kinds=("regular",), blocks=1, machine="knl-snc4-flat (tcg)")
    return table(changed(campaign, launches=list(map(Result.of, launches))), "pages")


def test_each_rank_is_reported_with_its_cpu_and_where_its_pages_are(pages: Table) -> None:
    first = {"rank": "0", "kind": "hbw", "CPU": "0", "its node": "0", "asked for": "4"}
    first |= {"on nodes": "4: 2 MiB", "as asked": "100 %", "local": "100 %"}
    first |= {"method": "move_pages", "launches": "3 of 3"}
    assert first in [dict(zip(pages.head, row, strict=True)) for row in pages.rows]
    assert len(pages.rows) == 2 * 8 + 1
    assert pages.caption.startswith("Emulated machine knl-snc4-flat (tcg)")


def test_a_launch_whose_pages_differ_has_a_row_with_its_name(pages: Table) -> None:
    rows = [row for row in pages.rows if row[:2] == ["3", "hbw_preferred"]]
    assert [row[-1] for row in rows] == ["1 of 3: 0000-vm-knl-snc4-flat", "2 of 3"]
    assert rows[0][5:7] == ["3: 1 MiB; 5: 1 MiB", "50 %"]


@pytest.mark.parametrize("silent", [1, 8])
def test_of_a_rank_of_whose_pages_nothing_is_reported_no_share_is_reported(silent: int) -> None:
    launch = make_launch(kinds=("hbw",), localities=("local",))
    for rank in launch["ranks"][:silent]:
        del rank["pools"][0]["bytes"]
        rank["pools"][0]["placement"] = {}
    campaign = find(kinds=("regular",), blocks=1)
    shown = table(changed(campaign, launches=[Result.of(launch)]), "pages")
    placed, *shares = (column(shown, head) for head in ("on nodes", "as asked", "local"))
    assert placed.count(NOTHING) == silent
    for texts in shares:
        assert (texts.count(NOTHING), texts.count("100 %")) == (silent, 8 - silent)


def test_pages_read_back_as_they_were(pages: Table) -> None:
    back = pd.read_csv(io.StringIO(pages.csv()), dtype={"asked": str})
    pd.testing.assert_frame_equal(back, pages.data, check_exact=True)
