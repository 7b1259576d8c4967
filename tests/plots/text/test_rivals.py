"""A bench's page: sentences and a table from its ratios alone."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from experiments.analysis.reading import COLUMNS, Campaign
from experiments.analysis.statistics import FACTORS
from experiments.bench.question import ask
from plots.text import rivals


def bench(
    ratios: dict[tuple[str, int], float], blocks: int = 6, again: float = 1.01, twins: int = 8
) -> Campaign:
    """{(MPI, bytes): its time over direct's}, in plain Bcast; direct again in so many cells more of
    two bands of sizes.
    """
    cells = [(*cell, "mpi", ratio) for cell, ratio in ratios.items()]
    sizes = [first + 4 * n for first in (16, 2**16) for n in range(twins)]
    cells += [(mpi, size, "direct-again", again) for mpi in ("mpich", "impi") for size in sizes]
    rows = [
        dict.fromkeys(FACTORS, "")
        | {"block": block, "arm": mpi, "mpi": mpi, "setting": "default", "ranks": 2}
        | {"operation": "bcast", "transport": transport, "form": "plain", "bytes": size}
        | {"emulated": False, "turns": (seconds,), "contest": 1, "company": "", "group": 1}
        | {"median_s": seconds * (1 + block / 100), "bound_s": 0.5}
        for mpi, size, other, ratio in cells
        for transport, seconds in (("direct", 1.0), (other, ratio))
        for block in range(blocks)
    ]
    cells = pd.DataFrame(rows, columns=list(COLUMNS))
    return Campaign(
        *(Path(), "bench", ask(2), {}, [], cells, cells.head(0), cells.head(0), []),
    )


RATIOS = {("mpich", 8): 3.0, ("impi", 8): 1.5, ("mpich", 2**20): 0.8, ("impi", 2**20): 4.0}


def test_the_answer_spans_the_best_mpis_of_all_sizes_and_owns_to_losses() -> None:
    (answer,) = rivals.answers(bench(RATIOS))
    assert answer.question.endswith("Bcast, plain calls, 2 ranks")
    assert answer.sentence == (
        "It takes 0.80 times as long (mpich, 1 MiB) to 1.50 times as long (impi, 8 B). "
        "It is faster than direct beyond the noise floor in 1 cell. "
        "Seen in 6 paired blocks; a claim needs 10."
    )
    assert answer.figure == "bench-ratios-2-ranks"
    (few,) = rivals.answers(bench(RATIOS, blocks=2))
    assert few.sentence.endswith("There is no interval below 6 blocks.")


def test_one_cell_is_no_range_and_a_barrier_has_no_figure() -> None:
    one = bench({("mpich", 8): 1.5})
    (answer,) = rivals.answers(replace(one, cells=one.cells.assign(operation="barrier")))
    assert answer.sentence.startswith("It takes 1.50 times as long (mpich, 8 B). ")
    assert not answer.figure


def test_nothing_is_claimed_within_the_noise_of_direct_itself() -> None:
    (loud,) = rivals.answers(bench(RATIOS, blocks=10, again=1.3))
    assert "faster than direct" not in loud.sentence
    assert "claim" not in rivals.answers(bench(RATIOS, blocks=10))[0].sentence
    assert rivals.marks(bench(RATIOS, again=1.3)) == ["Direct against itself strays 30.0 % at most"]


def test_without_enough_cells_of_direct_again_nothing_differs() -> None:
    unknown = bench(RATIOS, twins=3)
    (answer,) = rivals.answers(unknown)
    assert "faster than direct" not in answer.sentence
    assert answer.sentence.endswith(
        "Direct was measured twice in fewer than 8 cells of a size like 8 B, 1 MiB, so the noise "
        "floor there is unknown and nothing differs: measure more sizes or operations."
    )
    assert rivals.marks(unknown) == ["The noise floor is unknown"]


def test_the_table_has_a_row_per_cell_and_a_column_per_peer() -> None:
    table = rivals.table(bench(RATIOS))
    assert table.head[4:] == ["mpich", "impi"]
    assert table.rows == [
        ["Bcast", "plain", "2", "8 B", "3.00", "1.50"],
        ["Bcast", "plain", "2", "1 MiB", "0.80", "4.00"],
    ]
