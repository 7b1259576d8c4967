"""What the pages say of a stored bench follows from its JSON alone, which may be of anyone."""

import json
import lzma
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis import disturbed
from experiments.results import typed
from experiments.results.store import ResultsError
from plots.tables import stored_bench

STORED = Path(__file__).parents[3] / "docs" / "data" / "cores.json.xz"

CELL = {"operation": "bcast", "bytes": 1024, "form": "plain"}


def peer(ranks: int, ratio: float, **other: Any) -> dict[str, Any]:
    sure = {"low": ratio - 0.5, "high": ratio + 0.5, "verdict": "differs", "blocks": 6}
    contender = {"ranks": ranks, "peer": "mpich", "best": True, "ratio": ratio}
    return CELL | contender | sure | other


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
    assert text.startswith("direct with plain calls takes less time than the best MPI of the cell ")
    assert "in 1 of 2 cells: the best MPI takes 1.95 times as long in the median cell" in text
    assert "(0.90 to 3.00 from cell to cell); whole interval above 1 and" in text
    assert (
        " direct with persistent calls takes less time than the best MPI of the cell in 1" in text
    )
    assert "noise floor: 1 cells. 1 of 3 cells have fewer than 6 blocks and no interval." in text
    assert "5 or 6 blocks of three MPIs in turns, each MPI at its default settings." in text
    assert text.endswith("Noise floor 5.0 %.")


def test_the_headline_pools_no_forms_of_calls_and_owns_to_a_loaded_host(
    summary: dict[str, Any],
) -> None:
    busy = f"{disturbed.OTHERS} for more than 5 % of the time in 12 of 66 launches"
    text = stored_bench.headline(summary | {"notes": [busy, "6 paired blocks"]})
    assert text.startswith("With 2 to 4 ranks, the best MPI takes 1.95 times as long as direct in ")
    assert "with plain calls (0.90 to 3.00 from cell to cell of 2), and 2.00 times as long" in text
    assert text.endswith(
        "(2.00 to 2.00 from cell to cell of 1), each MPI at its default settings. Other processes "
        "ran on CPUs of ranks for more than 5 % of the time in 12 of 66 launches."
    )
    tuned = [peer | {"setting": "sm"} for peer in summary["peers"]]
    assert "default settings" not in stored_bench.headline(summary | {"peers": tuned})


def test_calls_with_objects_are_compared_launch_by_launch_and_mpi_by_mpi() -> None:
    def launch(contender: str, median_s: float, flavour: str = "mpich") -> dict[str, Any]:
        return CELL | {"contender": contender, "flavour": flavour, "median_s": median_s, "ranks": 2}

    slower = [launch("pickle", 4e-6 * n) for n in range(1, 7)]
    ours = [launch("objects", 2e-6 * n) for n in range(1, 7)]
    others = [launch("pickle", 3e-6, "impi"), launch("objects", 2e-6, "impi")]
    head, rows = stored_bench.objects({"launches": [*slower, *ours, *others]})
    assert head[2:] == [
        "hbmcomm over MPICH",
        "mpi4py / hbmcomm, MPICH",
        "mpi4py / hbmcomm, Intel MPI",
    ]
    assert rows == [["bcast", "1 KiB", "7.00 µs", "2.00 (2.00 to 2.00)", "1.50"]]


def test_the_table_has_plain_calls_and_a_column_for_each_number_of_ranks(
    summary: dict[str, Any],
) -> None:
    head, rows = stored_bench.ratios(summary)
    assert head[2:] == ["direct, 4 ranks", *(f"best MPI / direct, {n} ranks" for n in (2, 4))]
    interval = "0.90, MPICH (0.40 to 1.40)"
    assert rows == [["Bcast", "1 KiB", "8.00 µs", interval, "3.00, Intel MPI"]]


def test_a_cell_without_an_mpi_has_a_dash(summary: dict[str, Any]) -> None:
    summary["peers"] = [contender for contender in summary["peers"] if contender["peer"] != "impi"]
    assert stored_bench.ratios(summary)[1][0][-1] == "–"


def test_an_unknown_noise_floor_is_a_dash(summary: dict[str, Any]) -> None:
    assert stored_bench.sentence(summary | {"noise": None}).endswith("Noise floor –.")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda bench: bench.pop("peers"), "it lacks peers"),
        (lambda bench: bench["launches"][3].pop("bytes"), "launches[3] lacks bytes"),
        (lambda bench: bench["launches"][0].update(median_s=0), "median_s holds 0, and must be"),
        (lambda bench: bench["launches"][0].update(ranks="2"), "launches[0].ranks holds '2'"),
        (lambda bench: bench["launches"][0].update(bound_s=-1.0), "bound_s holds -1.0"),
        (lambda bench: bench["direct"][0].update(seconds=math.nan), "seconds holds nan, which"),
        (lambda bench: bench["peers"][0].update(peer="\x1b[31m"), r"peer holds '\x1b[31m', with"),
        (lambda bench: bench["peers"][0].update(operation=["a"]), "operation holds ['a']"),
        (lambda bench: bench.update(machine=[1]), "machine holds [1], and must be a table"),
        (lambda bench: bench.update(noise="x"), "noise holds 'x', and must be a number or null"),
    ],
)
def test_a_field_of_another_type_or_range_is_named(
    change: Callable[[Any], Any], text: str, tmp_path: Path
) -> None:
    bench = stored_bench.load(STORED)
    change(bench)
    path = tmp_path / "bench.json.xz"
    path.write_bytes(lzma.compress(json.dumps(bench).encode(), preset=0))
    assert text in refusal(path)


@pytest.mark.parametrize("kind", ["text", "cut", "tail", "bomb", "list", "pipe", "folder"])
def test_what_is_no_packed_bench_is_one_message(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typed, "MOST_JSON", 2**22)
    path, whole = tmp_path / "bench.json.xz", STORED.read_bytes()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        made = {
            "text": b"{}",
            "cut": whole[:-100],
            "tail": whole + b"x",
            "bomb": lzma.compress(bytes(2**23), preset=0),
            "list": lzma.compress(b"[1]"),
        }
        path.write_bytes(made[kind])
    refusal(path)


def refusal(path: Path) -> str:
    with pytest.raises(ResultsError) as refused:
        stored_bench.load(path)
    message = str(refused.value)
    assert message.startswith(f"{path} holds no medians of a bench (")
    assert message.isprintable()
    assert len(message) < 600
    return message
