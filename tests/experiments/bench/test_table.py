"""The tables, to the letter."""

import io
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from experiments.bench import table
from experiments.bench.question import ask
from experiments.bench.store import Bench
from experiments.bench.table import bytes_text, percent_text, ratio_text, seconds_text

Medians = Callable[..., pd.DataFrame]

GOLDEN = """\
Allreduce, 2 ranks
┏━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ bytes ┃ call       ┃  direct ┃ of bound ┃       openmpi ┃         mpich ┃        pickle ┃ best MPI over direct       ┃
┡━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│ 1 KiB │ plain      │ 1.00 µs │     50 % │ 3.00 µs 3.00× │ 2.00 µs 2.00× │ 20.0 µs 20.0× │ 2.00× (1.90 to 2.10) mpich │
│ 1 MiB │ plain      │  100 µs │     50 % │             – │ 80.0 µs 0.80× │             – │ 0.80× (0.70 to 0.90) mpich │
├───────┼────────────┼─────────┼──────────┼───────────────┼───────────────┼───────────────┼────────────────────────────┤
│ 1 KiB │ persistent │  500 ns │     50 % │ 1.50 µs 3.00× │             – │             – │ 3.00× openmpi              │
└───────┴────────────┴─────────┴──────────┴───────────────┴───────────────┴───────────────┴────────────────────────────┘

Barrier, 2 ranks
┏━━━━━━━┳━━━━━━━┳━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┓
┃ bytes ┃ call  ┃ direct ┃ of bound ┃      openmpi ┃ best MPI over direct ┃
┡━━━━━━━╇━━━━━━━╇━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━┩
│     – │ plain │ 200 ns │        – │ 300 ns 1.50× │ 1.50× openmpi        │
└───────┴───────┴────────┴──────────┴──────────────┴──────────────────────┘

Times are medians over launches of the maximum over ranks, arrays of the arena, isolated cadence; × is the peer's time
over direct's in the same launch, above 1 direct is faster. Of bound: the time that the bytes take at the rate at which
all ranks copy at once, over direct's time.
6 blocks, exact 95 % intervals in brackets. Direct against itself strays 0.0 %.
Note: gloo is left out
"""  # noqa: E501


def scattered(middle: float, by: float) -> list[float]:
    """Six values whose median is `middle`, with the ends of the interval `by` away."""
    return [middle - by, middle - by, middle, middle, middle + by, middle + by]


@pytest.fixture
def bench(medians: Medians) -> Bench:
    frame = pd.concat(
        [
            medians(
                {
                    ("mpich", "direct"): [1e-6] * 6,
                    ("mpich", "direct-again"): [1e-6] * 6,
                    ("mpich", "mpi"): scattered(2e-6, 0.1e-6),
                    ("openmpi", "direct"): [1e-6] * 6,
                    ("openmpi", "mpi"): [3e-6] * 6,
                    ("openmpi", "pickle"): [20e-6] * 6,
                }
            ),
            medians(
                {("mpich", "direct"): [100e-6] * 6, ("mpich", "mpi"): scattered(80e-6, 10e-6)},
                size=2**20,
            ),
            medians(
                {("openmpi", "direct"): [0.5e-6], ("openmpi", "mpi"): [1.5e-6]}, form="persistent"
            ),
            medians(
                {("openmpi", "direct"): [0.2e-6], ("openmpi", "mpi"): [0.3e-6]},
                operation="barrier",
                size=0,
            ),
        ]
    )
    frame["bound_s"] = frame["median_s"].where(frame["operation"] != "barrier") / 2
    return Bench(Path(), {"question": ask(2).to_dict()}, frame, ("gloo is left out",))


def text(bench: Bench) -> str:
    output = io.StringIO()
    Console(file=output, width=120).print(table.render(bench), highlight=False)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def test_a_table_per_operation_with_the_best_mpi_and_its_interval(bench: Bench) -> None:
    assert text(bench) == GOLDEN


def test_few_blocks_are_told_to_have_no_interval(bench: Bench) -> None:
    few = bench.medians[bench.medians["block"] < 2]
    assert "2 blocks: no interval below 6." in text(Bench(Path(), bench.header, few, ()))


TUNED = """\
Bcast, 2 ranks
┏━━━━━━━┳━━━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┓
┃ bytes ┃ call        ┃  direct ┃ of bound ┃ direct 88fb54c ┃       openmpi ┃ best MPI over direct ┃
┡━━━━━━━╇━━━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━┩
│   8 B │ nonblocking │ 1.00 µs │     50 % │   900 ns 0.90× │ 1.20 µs 1.20× │ 1.20× openmpi sm     │
└───────┴─────────────┴─────────┴──────────┴────────────────┴───────────────┴──────────────────────┘

Times are medians over launches of the maximum over ranks, arrays of the arena, isolated cadence; × is the peer's time
over direct's in the same launch, above 1 direct is faster. Of bound: the time that the bytes take at the rate at which
all ranks copy at once, over direct's time.
2 blocks: no interval below 6. Direct against itself strays –.
Each MPI is shown in the setting that did best in the cell; 2 settings were tried in all. The lowest of many medians is
low by chance too: that counts against direct.
direct 88fb54c over direct, all launches: median 0.90×, lowest 0.90× of 1 cells; below 0.97 with the whole interval:
nonblocking Bcast 8 B with 2 ranks 0.90×.
"""  # noqa: E501


def test_tuned_peers_and_another_build(medians: Medians) -> None:
    own = {("openmpi", "direct"): [1e-6] * 2, ("openmpi", "other-build"): [0.9e-6] * 2}
    cell = {"operation": "bcast", "size": 8, "form": "nonblocking"}
    frame = pd.concat(
        [
            medians({**own, ("openmpi", "mpi"): [1.5e-6] * 2}, **cell),
            medians({**own, ("openmpi", "mpi"): [1.2e-6] * 2}, setting="sm", **cell),
        ]
    )
    frame["bound_s"] = 0.5e-6
    question = ask(2, tuned=True, forms="nonblocking", against="there").to_dict()
    bench = Bench(Path(), {"question": question, "other_build": "88fb54c"}, frame, ())
    assert text(bench) == TUNED


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (bytes_text(0), "–"),
        (bytes_text(1000), "1000 B"),
        (bytes_text(3 * 2**19), "1536 KiB"),
        (seconds_text(9.994e-7), "999 ns"),
        (seconds_text(9.999e-7), "1.00 µs"),
        (seconds_text(0.01234), "12.3 ms"),
        (seconds_text(12.0), "12.0 s"),
        (seconds_text(float("nan")), "–"),
        (ratio_text(0.5), "0.50"),
        (ratio_text(12.34), "12.3"),
        (ratio_text(123.4), "123"),
        (percent_text(0.934), "93 %"),
        (percent_text(float("nan")), "–"),
    ],
)
def test_numbers_have_the_digits_that_they_are_worth(found: str, said: str) -> None:
    assert found == said
