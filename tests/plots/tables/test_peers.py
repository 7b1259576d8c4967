"""The tables, to the letter."""

import io
from dataclasses import replace

import pandas as pd
import pytest
from rich.console import Console

from experiments.analysis.campaign import Campaign
from experiments.model.contender_names import LACKING
from plots.tables import peers as table
from tests.benches import ask, medians, stored

GOLDEN = """\
Allreduce, 2 ranks, plain calls
                 of
bytes  direct bound openmpi mpich pickle 95 % of *
1 KiB 1.00 µs  50 %    3.00 2.00*   20.0 1.90–2.10
1 MiB  100 µs  50 %       – 0.80*      – 0.70–0.90

Allreduce, 2 ranks, persistent calls
                of
bytes direct bound openmpi 95 % of *
1 KiB 500 ns  50 %   3.00*         –

Barrier, 2 ranks, plain calls
                of
bytes direct bound openmpi 95 % of *
    – 200 ns     –   1.50*         –

direct: its median time over launches, of the slowest rank, arrays of the arena,
isolated cadence. Others: their time over direct's in the same launch, the
median over launches; above 1 direct is faster. *: the best MPI.
pickle: beside the MPI with which it did best in the cell.
Of bound: the time that the operation's bytes take at the rate at which all
ranks copy at once, over direct's time. In caches it can exceed 100 %: the copy
reads and writes other buffers on each rank, and what several ranks read at once
is fetched once.
6 blocks; 95 %: interval of the ratio at *. Direct was measured twice in fewer
than 8 cells of each band of sizes: the noise floor is unknown and nothing
differs.
Note: gloo is left out
"""


def scattered(middle: float, by: float) -> list[float]:
    """Six values with the median `middle` and the ends of the interval `by` away."""
    return [middle - by, middle - by, middle, middle, middle + by, middle + by]


@pytest.fixture
def bench() -> Campaign:
    mpich = {"direct": 1e-6, "direct-again": 1e-6, "mpi": scattered(2e-6, 0.1e-6)}
    openmpi = {"direct": 1e-6, "mpi": 3e-6, "pickle": 20e-6}
    small = {("mpich", name): seconds for name, seconds in mpich.items()}
    small |= {("openmpi", name): seconds for name, seconds in openmpi.items()}
    large = {("mpich", "direct"): 100e-6, ("mpich", "mpi"): scattered(80e-6, 10e-6)}
    persistent = {("openmpi", "direct"): [0.5e-6], ("openmpi", "mpi"): [1.5e-6]}
    barrier = {("openmpi", "direct"): [0.2e-6], ("openmpi", "mpi"): [0.3e-6]}
    cells = [medians(small), medians(large, size=2**20), medians(persistent, form="persistent")]
    frame = pd.concat([*cells, medians(barrier, operation="barrier", size=0)])
    frame["bound_s"] = frame["median_s"].where(frame["operation"] != "barrier") / 2
    return stored(frame, ask(2), "gloo is left out")


def text(bench: Campaign) -> str:
    output = io.StringIO()
    Console(file=output, width=80).print(table.render(bench), highlight=False)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def test_a_table_per_operation_with_the_best_mpi_and_its_interval(bench: Campaign) -> None:
    assert text(bench) == GOLDEN


OF_TORCH = """\
Allreduce, 2 ranks, plain calls: torch
                of
bytes direct bound torch operators vllm
1 KiB 1.00 µs 50 % 6.00 1.20 3.00
"""


def test_peers_of_torch_have_a_table_of_their_own_and_may_be_the_only_ones() -> None:
    others = {"torch": 6e-6, "operators": 1.2e-6, "vllm": 3e-6}
    times = {("openmpi", name): taken for name, taken in others.items()}
    cells = medians({("openmpi", "direct"): 1e-6} | times).assign(bound_s=0.5e-6)
    tables = text(stored(cells, ask(2))).partition("\n\n")[0]
    lines = [" ".join(line.split()) for line in tables.splitlines()]
    assert lines == [" ".join(line.split()) for line in OF_TORCH.splitlines()]


def test_an_arm_with_fewer_blocks_than_the_others_is_named(bench: Campaign) -> None:
    cells = bench.cells
    short = cells[(cells["arm"] != "openmpi-default") | (cells["block"] < 1)]
    message = " ".join(text(replace(bench, cells=short)).split())
    assert "6 blocks (fewer of openmpi-default with 2 ranks: 1); 95 %: interval" in message


def test_no_line_is_longer_than_a_terminal_with_every_peer_in_large_numbers() -> None:
    times = {("openmpi", "direct"): 123e-6, ("openmpi", "other-build"): 140e-6}
    times |= {("openmpi", peer): scattered(0.1, 0.01) for peer in ("mpi", *LACKING)}
    for mpi in ("mpich", "impi"):
        times |= {(mpi, "direct"): 123e-6, (mpi, "mpi"): scattered(0.2, 0.01)}
    cells = medians(times, operation="reduce_scatter", size=512 * 1024, form="nonblocking")
    message = text(stored(cells, ask(2), other_build="88fb54c-dirty"))
    assert max(map(len, message.splitlines())) <= 80
    assert "…" not in message


@pytest.mark.parametrize(("again", "marked"), [(1.01, True), (1.5, False)])
def test_an_interval_is_coloured_beyond_the_noise_of_direct_itself_alone(
    again: float, marked: bool
) -> None:
    times = {("mpich", "direct"): 1.0, ("mpich", "direct-again"): again, ("mpich", "mpi"): 0.8}
    cells = pd.concat([medians(times, size=2**n) for n in range(2, 10)])
    output = io.StringIO()
    Console(file=output, width=80, force_terminal=True, color_system="standard").print(
        table.render(stored(cells, ask(2))), highlight=False
    )
    assert ("\x1b[31m0.80–0.80" in output.getvalue()) == marked
    assert "An interval is coloured where" in " ".join(output.getvalue().split())


TUNED = """\
Bcast, 2 ranks, nonblocking calls
                 of other
bytes  direct bound build openmpi 95 % of *
  8 B 1.00 µs  50 %  0.90   1.20*         –
* in another setting than its default: 8 B openmpi sm

direct: its median time over launches, of the slowest rank, arrays of the arena,
isolated cadence. Others: their time over direct's in the same launch, the
median over launches; above 1 direct is faster. *: the best MPI.
Of bound: the time that the operation's bytes take at the rate at which all
ranks copy at once, over direct's time. In caches it can exceed 100 %: the copy
reads and writes other buffers on each rank, and what several ranks read at once
is fetched once.
2 blocks: no interval below 6. Direct was measured twice in fewer than 8 cells
of each band of sizes: the noise floor is unknown and nothing differs.
Each MPI is shown in the setting that did best in the cell; 2 settings were
tried in all. The lowest of many medians is low by chance too: that counts
against direct.
Other build: direct 88fb54c, over direct in all launches: median 0.90, lowest
0.90 of 1 cell; below 0.97 with the whole interval and beyond the noise floor:
none.
"""


def test_tuned_peers_and_another_build() -> None:
    own = {("openmpi", "direct"): [1e-6] * 2, ("openmpi", "other-build"): [0.9e-6] * 2}
    cell = {"operation": "bcast", "size": 8, "form": "nonblocking"}
    usual = medians(own | {("openmpi", "mpi"): [1.5e-6] * 2}, **cell)
    other = medians(own | {("openmpi", "mpi"): [1.2e-6] * 2}, setting="sm", **cell)
    frame = pd.concat([usual, other]).assign(bound_s=0.5e-6)
    question = ask(2, tuned=True, forms="nonblocking", against="there")
    assert text(stored(frame, question, other_build="88fb54c")) == TUNED
