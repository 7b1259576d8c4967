"""The paper's table: its layout, its two figures, and ours beside them."""

import numpy as np

from plots.tables.published import comparison
from tests.campaigns import changed, find


def test_a_row_per_operation_and_rank_count_with_host_and_docker_beside() -> None:
    campaign = find(emulated=False, ranks=(2, 16), sizes=(1024, 4194304))
    (table,) = comparison(campaign)
    assert table.head == [
        "operation",
        "ranks",
        "mpi, host",
        "mpi, Docker, tuned, one container",
        "direct, host",
        "direct, Docker, tuned, one container",
        "published",
    ]
    assert [row[:2] for row in table.rows[:3]] == [["Bcast", "2"], ["Bcast", "16"], ["Gather", "2"]]
    bcast_16, most = table.rows[1], table.rows[-1]
    assert bcast_16[-1] == "445 % (4.45 times)"
    assert most[:2] == ["most", "–"] and most[-1] == "487 % (4.87 times)"
    assert {row[-1] for row in table.rows} == {"–", bcast_16[-1], most[-1]}
    mine = campaign.speedups.query(
        "operation == 'bcast' and ranks == 16 and transport == 'mpi' and arm == 'host'"
    )
    cell = mine[mine["bytes"] == 4194304].iloc[0]
    ratio, low, high = (round(100 * cell[name]) for name in ("ratio", "low", "high"))
    assert bcast_16[2] == f"{ratio} % ({low} to {high})"
    assert most[2] == f"{100 * campaign.speedups.query(_LARGEST)['ratio'].max():.0f} %"
    assert "445 % is read as 4.45 times as fast" in table.caption
    assert "4 MiB per rank" in table.caption


_LARGEST = "bytes == 4194304 and transport == 'mpi' and arm == 'host'"


def test_an_operation_without_any_pair_has_its_rows_all_the_same() -> None:
    """Where the two kinds were timed in groups of different sizes, a block gives no ratio."""
    campaign = find(ranks=(2, 16))
    paired = campaign.speedups[campaign.speedups["operation"] != "bcast"]
    (table,) = comparison(changed(campaign, speedups=paired))
    bcast = [row for row in table.rows if row[0] == "Bcast"]
    assert [row[1:-1] for row in bcast] == [["2", *"––––"], ["16", *"––––"]]


def test_the_file_holds_plain_ratios() -> None:
    (table,) = comparison(find(ranks=(2, 16), blocks=2))
    published = table.data.set_index(["operation", "ranks"])["published"]
    assert set(published["bcast", 16]) == {4.45}
    assert np.isnan(published["bcast", 2]).all()
    assert table.csv().startswith("operation,ranks,transport,arm,ratio,low,high,blocks,published,")


def test_emulated_memory_is_told_in_the_caption() -> None:
    (table,) = comparison(find(emulated=True))
    assert "Emulated HBM" in table.caption


def test_each_mpi_has_a_table_of_its_own() -> None:
    tables = comparison(find(mpis=("openmpi", "mpich"), blocks=2))
    assert [table.name for table in tables] == ["paper-openmpi", "paper-mpich"]


def test_without_hbm_there_is_none() -> None:
    assert comparison(find(kinds=("regular",))) == []
