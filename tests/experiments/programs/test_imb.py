"""IMB-MPI1's command lines and tables, whole, against text that the program printed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.catalogue import spec
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.environments.host import Host
from experiments.environments.process import Process
from experiments.model.launch import Cell, Launch
from experiments.programs import imb
from tests.launched import LAUNCH

PRINTED = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
#----------------------------------------------------------------
# Date                  : Sat Nov 21 15:40:03 2026
# MPI Version           : 4.1

# List of Benchmarks to run:

# Bcast
# Allreduce

#----------------------------------------------------------------
# Benchmarking Bcast 
# #processes = 2 
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1024          100         1.68         2.27         1.98
         4096          100         0.53         0.65         0.59

#----------------------------------------------------------------
# Benchmarking Allreduce 
# #processes = 2 
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1024          100         1.84         3.78         2.81


# All processes entering MPI_Finalize
"""  # noqa: W291 (as printed)


def launch(cells: tuple[Cell, ...], dtype: str = "float32", **measurement: str) -> Launch:
    shown = replace(LAUNCH.measurement, **measurement)
    external = {"arm": "imb", "program": "IMB", "mpi": "impi"}
    return replace(LAUNCH, **external, dtype=dtype, measurement=shown, cells=cells)


def cell(operation: str, size: int, transport: str = "mpi", kind: str = "regular") -> Cell:
    return Cell(operation, transport, kind, "local", size)


def test_the_command_starts_the_program_that_starts_imb() -> None:
    environment = Host(Path("/venv"), 2, {}, (imb.RUN, "2"))
    made = environment.command(launch((cell("bcast", 1024),)), Path("/out/x"))
    assert made == Process(
        ("/venv/bin/python", "-P", "-m", "experiments.programs.imb_run", "/out/x", "2"),
        {
            "PATH": "/venv/bin:/usr/local/bin:/usr/bin:/bin",
            "LD_LIBRARY_PATH": "/venv/lib",
            "I_MPI_HYDRA_BOOTSTRAP": "fork",
            "I_MPI_PIN": "0",
            "I_MPI_FABRICS": "shm",
        },
    )


def test_every_size_of_an_operation_is_asked_for_once_over_all_transports_and_kinds() -> None:
    asked = (
        cell("bcast", 1024),
        cell("allreduce", 1024, "direct"),
        cell("bcast", 1024, "direct"),
        cell("bcast", 256, kind="hbw"),
        cell("bcast", 2**20),
        cell("bcast", 64),
    )
    runs, left_out = imb.plan(launch(asked))
    assert runs == {("bcast", 50): (1024, 64), ("allreduce", 50): (1024,), ("bcast", 4): (2**20,)}
    assert left_out == {}


def test_what_imb_cannot_do_is_left_out_with_a_reason() -> None:
    asked = (cell("bcast", 8), cell("allreduce", 8), cell("gather", 2**31))
    runs, left_out = imb.plan(launch(asked, "int64"))
    assert runs == {("bcast", 50): (8,)}
    assert left_out == {
        ("allreduce", 8): "IMB does not reduce int64",
        ("gather", 2**31): "IMB takes sizes up to 1073741824 bytes",
    }


def test_the_root_stays_and_every_operation_is_synchronised_as_in_the_harness() -> None:
    asked = launch((cell("bcast", 2**24),))
    words = imb.arguments(asked, "bcast", 1, (2**10, 2**24), Path("/out/lengths"), 2**25)
    assert " ".join(words) == (
        "-npmin 2 -iter 1 -iter_policy off -msglen /out/lengths -msglog 0:24 -mem 1 "
        "-root_shift off -sync on -imb_barrier off -zero_size off "
        "-data_type float -red_data_type float Bcast"
    )


def test_streaming_drops_the_barriers_and_rotating_buffers_leave_the_cache() -> None:
    asked = launch((cell("alltoall", 64),), "int64", cadence="streaming", cache="rotating")
    words = imb.arguments(asked, "alltoall", 50, (64,), Path("/out/lengths"), 2**25)
    assert " ".join(words) == (
        "-npmin 2 -iter 50 -iter_policy off -msglen /out/lengths -msglog 0:6 -mem 1 "
        "-root_shift off -sync off -imb_barrier off -zero_size off "
        "-data_type double -red_data_type double -off_cache 32,64 Alltoall"
    )


def test_each_size_is_listed_as_often_as_it_is_measured() -> None:
    assert imb.length_list((64, 8)) == "64\n" * 23 + "8\n" * 23


def test_a_table_is_read_from_among_others() -> None:
    assert imb.parse(PRINTED, "bcast", 2) == [
        imb.Row(1024, 100, pytest.approx(1.68e-6), pytest.approx(2.27e-6), pytest.approx(1.98e-6)),
        imb.Row(4096, 100, pytest.approx(0.53e-6), pytest.approx(0.65e-6), pytest.approx(0.59e-6)),
    ]
    assert [row.bytes for row in imb.parse(PRINTED, "allreduce", 2)] == [1024]
    assert imb.version(PRINTED) == "Intel(R) MPI Benchmarks 2021.11, MPI-1 part"


def test_a_missing_table_and_a_torn_row_are_named() -> None:
    with pytest.raises(imb.ImbFailed, match="no table of Gather with 2 processes"):
        imb.parse(PRINTED, "gather", 2)
    with pytest.raises(imb.ImbFailed, match="no table of Bcast with 4 processes"):
        imb.parse(PRINTED, "bcast", 4)
    torn = PRINTED.replace("4096          100", "4096 exceeds the memory")
    with pytest.raises(imb.ImbFailed, match="a line that is not a row: '4096 exceeds"):
        imb.parse(torn, "bcast", 2)


def test_rows_become_cells_and_the_first_of_each_size_are_its_warm_up() -> None:
    rows = [imb.Row(size, 50, 1e-6, 2e-6, 1.5e-6) for size in (64, 8) for _ in range(23)]
    cells, held = imb.cells("bcast", (64, 8), rows, 7)
    assert [result_cell["samples"] for result_cell in cells] == ["c00007", "c00008"]
    assert cells[0] == {
        "operation": "bcast",
        "transport": "imb",
        "kind": "regular",
        "locality": "local",
        "bytes": 64,
        "samples": "c00007",
        "warmup": 3,
        "group": 1,
        "emulated": False,
        "averaged": 50,
        "columns": ["min", "mean", "max"],
    }
    assert held["c00007"].tolist() == [[1e-6, 1.5e-6, 2e-6]] * 23  # as printed, and no rank's own
    assert np.all(held["c00008"].max(axis=1) == 2e-6)


def test_other_rows_than_those_asked_for_are_refused() -> None:
    rows = [imb.Row(64, 50, 1e-6, 2e-6, 1.5e-6)] * 22
    with pytest.raises(imb.ImbFailed, match="22 rows of bcast where 23 were asked for"):
        imb.cells("bcast", (64,), rows, 0)


def test_a_campaign_starts_it_once_in_every_block_and_nowhere_else(tmp_path: Path) -> None:
    quick = spec.load("quick")
    asked = spec.restrict(quick, environments="host", mpis="all", external="IMB", blocks=2)
    planned = campaign.plan(asked, Request(tmp_path / "out", seed=1))
    lines = campaign.dry_run(planned, planned.launches)
    ours = [line for line in lines if "-m experiments.programs.imb_run" in line]
    assert len(lines) == 2 * (2 + 2 + 3)  # host and host again with each MPI, imb with one
    assert len(ours) == 2
    assert all(line.split()[-2].endswith("-imb") for line in ours)
