"""What the pages say of a stored bench follows from its JSON alone."""

from typing import Any

import pytest

from plots.tables import stored_bench

CELL = {"operation": "bcast", "bytes": 1024, "form": "plain"}


def peer(ranks: int, ratio: float, **other: Any) -> dict[str, Any]:
    sure = {"low": ratio - 0.5, "high": ratio + 0.5, "verdict": "differs", "blocks": 6}
    found = {"ranks": ranks, "peer": "mpich", "best": True, "ratio": ratio}
    return CELL | found | sure | other


def direct(ranks: int) -> dict[str, Any]:
    return CELL | {"ranks": ranks, "seconds": 2e-6 * ranks}


@pytest.fixture
def summary() -> dict[str, Any]:
    few = {"low": None, "high": None, "verdict": "too few blocks", "blocks": 5}
    return {
        "direct": [direct(2), direct(4), direct(2) | {"form": "persistent"}],
        "noise": 0.05,
        "peers": [
            peer(2, 0.9),
            peer(4, 3.0, peer="impi", **few),
            peer(4, 9.0, best=False),
            peer(2, 2.0, form="persistent"),
        ],
    }


def test_the_sentence_counts_cells_of_the_best_mpi(summary: dict[str, Any]) -> None:
    text = stored_bench.sentence(summary)
    assert "less time than the best MPI of the cell in 2 of 3 cells" in text
    assert "2.00 times as long in the median cell (0.90 to 3.00 from cell to cell)" in text
    assert "beyond the noise floor: 1; with fewer" in text
    assert "5 or 6 blocks" in text
    assert "Noise floor 5.0 %" in text


def test_the_headline_has_the_median_of_the_best_mpi(summary: dict[str, Any]) -> None:
    text = stored_bench.headline(summary)
    assert text.startswith("With 2 to 4 ranks, the best MPI takes 2.00 times as long as direct")
    assert text.endswith("(0.90 to 3.00 from cell to cell of 3).")


def test_the_table_has_plain_calls_and_a_column_for_each_number_of_ranks(
    summary: dict[str, Any],
) -> None:
    head, rows = stored_bench.ratios(summary)
    assert head[2:] == ["direct, 4 ranks", *(f"best MPI / direct, {n} ranks" for n in (2, 4))]
    interval = "0.90, MPICH (0.40 to 1.40)"
    assert rows == [["Bcast", "1 KiB", "8.00 µs", interval, "3.00, Intel MPI"]]


def test_a_cell_without_an_mpi_has_a_dash(summary: dict[str, Any]) -> None:
    summary["peers"] = [each for each in summary["peers"] if each["peer"] != "impi"]
    assert stored_bench.ratios(summary)[1][0][-1] == "–"
