"""Tables: the same numbers as CSV and in LaTeX."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from experiments.analysis.findings.campaign import Findings
from experiments.analysis.findings.page_placement import frame
from experiments.analysis.statistics import CONTAINER
from experiments.model.quantities import NOTHING, ratio_text
from plots.tables.results import tables
from plots.tables.table import Table, csv, escape, latex

Find = Callable[..., Findings]


def table(found: Findings, name: str) -> Table:
    (only,) = (each for each in tables(found) if each.name == name)
    return only


def test_there_is_a_table_behind_every_figure(findings: Find) -> None:
    names = [each.name for each in tables(findings())]
    assert names == [
        "paper",
        "times",
        "transport",
        "speedup",
        "container",
        "groups",
        "tails",
        "twins",
    ]
    found = findings(bindings=("packed", "spread"), blocks=2)
    assert "placement" in [each.name for each in tables(found)]
    found = findings(arms=("host", "host-again", "imb"), mpis=("impi",), blocks=2)
    assert "python" in [each.name for each in tables(found)]


def test_a_placement_that_is_compared_names_both_its_levels(findings: Find) -> None:
    both = findings(bindings=("packed", "spread"), localities=("local", "remote"), blocks=2)
    found = table(both, "placement")
    binding, locality = found.head.index("binding"), found.head.index("locality")
    assert {(row[0], row[binding], row[locality]) for row in found.rows} == {
        ("binding", "spread over packed", "local"),
        ("binding", "spread over packed", "remote"),
        ("locality", "packed", "remote over local"),
        ("locality", "spread", "remote over local"),
    }


def test_bindings_are_not_said_to_share_a_block(findings: Find) -> None:
    shown = "paired within a block (of bindings the n-th block of one with the n-th of the other),"
    bound = findings(bindings=("packed", "spread"), blocks=1)
    assert shown in table(bound, "placement").caption
    assert "paired within a block," in table(bound, "transport").caption
    distant = findings(localities=("local", "remote"), blocks=1)
    assert "paired within a block," in table(distant, "placement").caption


def test_a_row_knows_its_cell(findings: Find) -> None:
    container = table(findings(), "container")
    place = container.head.index("ratio")
    shown = [ratio_text(container.data.loc[cell, "ratio"]) for cell in container.cells]
    assert shown == [row[place] for row in container.rows]


def test_a_ratio_stands_with_its_verdict(findings: Find) -> None:
    container = table(findings(), "container")
    place = container.head.index("verdict")
    assert {row[place] for row in container.rows} == {"differs", "bounded"}
    assert not container.numeric[place]


@pytest.mark.parametrize("name", ["times", "transport", "speedup", "container"])
def test_a_csv_reads_back_as_it_was(findings: Find, name: str) -> None:
    data = table(findings(), name).data
    back = pd.read_csv(io.StringIO(csv(table(findings(), name))))
    levels = [key for key in (*CONTAINER, "setting") if key in back]
    # the host has no container's levels, and only a bench's MPI has a setting
    back[levels] = back[levels].astype(object).fillna("")
    pd.testing.assert_frame_equal(back, data, check_dtype=False, check_exact=True)


def test_rows_hold_units_and_intervals(findings: Find) -> None:
    times = table(findings(arms=("host",), transports=("mpi",), kinds=("regular",)), "times")
    assert times.head == [
        "operation",
        "message per rank",
        "median",
        "95 % from",
        "to",
        "p95",
        "p99",
        "memory bound",
        "skew",
        "bus",
        "group",
        "n",
        "launches",
    ]
    assert times.rows[0][:2] == ["Bcast", "1 KiB"]
    assert times.rows[0][2].endswith(" µs")
    assert times.rows[0][times.head.index("bus")].endswith(" GB/s")
    assert times.rows[0][-3:] == ["1", "1200", "6"]


def test_what_never_varies_stands_in_the_caption(findings: Find) -> None:
    speedup = table(findings(), "speedup")
    assert "kind" not in speedup.head
    assert "kind hbw (emulated)" in speedup.caption
    assert "cadence isolated" in speedup.caption


def test_rows_are_in_the_order_of_the_figures(findings: Find) -> None:
    rows = table(findings(), "times").rows
    assert [row[0] for row in rows] == ["host"] * 72 + ["docker-tuned-one"] * 72
    assert list(dict.fromkeys(row[1] for row in rows)) == ["Bcast", "Gather", "Allreduce"]
    assert [row[4] for row in rows[:4]] == ["1 KiB", "16 KiB", "256 KiB", "4 MiB"]


def test_an_interval_that_is_not_known_is_a_dash(findings: Find) -> None:
    container = table(findings(blocks=1), "container")
    assert {row[container.head.index("95 % interval")] for row in container.rows} == {"–"}


def test_a_group_has_one_ratio_for_all_its_sizes(findings: Find) -> None:
    groups = table(findings(kinds=("regular",)), "groups")
    assert groups.head[-6:] == ["ratio", "95 % interval", "verdict", "sizes", "blocks", "p"]
    assert len(groups.rows) == 3 * 3  # operations, transports
    assert {row[-3] for row in groups.rows} == {"4"}
    assert {row[-2] for row in groups.rows} == {"6"}


def test_ratios_stand_with_their_corrected_p(findings: Find) -> None:
    container = table(findings(), "container")
    assert container.head[-3:] == ["p", "p (Holm)", "least"]
    assert {row[-1] for row in container.rows} == {"0.125"}  # 6 blocks, 4 sizes


def test_latex_uses_booktabs_and_escapes(findings: Find) -> None:
    text = latex(table(findings(kinds=("regular", "hbw_interleave"), emulated=False), "times"))
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
def pages(findings: Find, launched: Callable[..., dict[str, Any]]) -> Table:
    """The table of two launches' pages; in one a rank's have strayed."""
    usual: dict[str, Any] = {"kinds": ("hbw", "hbw_preferred"), "localities": ("local",)}
    moved = {("hbw_preferred", "local", 3): {3: 2**20, 5: 2**20}}
    launches = [launched(block=n, **usual, placed=None if n else moved) for n in range(3)]
    found = findings(kinds=("regular",), blocks=1, machine="knl-snc4-flat (tcg)")
    return table(replace(found, pages=frame(launches)), "pages")


def test_each_rank_is_reported_with_its_cpu_and_where_its_pages_are(pages: Table) -> None:
    assert pages.head == [
        "rank",
        "kind",
        "CPU",
        "its node",
        "asked for",
        "on nodes",
        "as asked",
        "local",
        "method",
        "launches",
    ]
    assert [
        "0",
        "hbw",
        "0",
        "0",
        "4",
        "4: 2 MiB",
        "100 %",
        "100 %",
        "move_pages",
        "3 of 3",
    ] in pages.rows
    assert len(pages.rows) == 2 * 8 + 1
    assert pages.caption.startswith("Emulated machine knl-snc4-flat (tcg)")


def test_a_launch_whose_pages_differ_has_a_row_with_its_name(pages: Table) -> None:
    rows = [row for row in pages.rows if row[:2] == ["3", "hbw_preferred"]]
    assert [row[-1] for row in rows] == ["1 of 3: 0000-vm-knl-snc4-flat", "2 of 3"]
    assert rows[0][5:7] == ["3: 1 MiB; 5: 1 MiB", "50 %"]


@pytest.mark.parametrize("silent", [1, 8])
def test_of_a_rank_of_whose_pages_nothing_is_reported_no_share_is_reported(
    findings: Find, launched: Callable[..., dict[str, Any]], silent: int
) -> None:
    launch = launched(kinds=("hbw",), localities=("local",))
    for rank in launch["ranks"][:silent]:
        del rank["pools"][0]["bytes"]
        rank["pools"][0]["placement"] = {}
    found = findings(kinds=("regular",), blocks=1)
    shown = table(replace(found, pages=frame([launch])), "pages")
    places = [shown.head.index(name) for name in ("on nodes", "as asked", "local")]
    shares = [[row[place] for place in places] for row in shown.rows]
    assert shares.count([NOTHING] * 3) == silent
    assert sum(row[1:] == ["100 %", "100 %"] for row in shares) == 8 - silent


def test_pages_read_back_as_they_were(pages: Table) -> None:
    back = pd.read_csv(io.StringIO(csv(pages)), dtype={"asked": str})
    pd.testing.assert_frame_equal(back, pages.data, check_exact=True)
