"""IMB-MPI1 itself, over a launch of a campaign."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.environments.host import Host
from experiments.model.launch import Launch
from experiments.programs.imb import BENCHMARKS, RUN
from experiments.provision import mpi_wheels, passthrough
from tests.experiments.programs import beside


def launch(operations: tuple[str, ...], *sizes: int) -> Launch:
    own = {"mpis": ("impi",)}
    return beside.launch("IMB", *sizes, launches=own, timing={}, operations=operations)


def run(asked: Launch, folder: Path, **variables: str) -> tuple[int, str]:
    prefix, cores = mpi_wheels.ensure("impi", print), passthrough.cores()
    starter = Host(prefix, cores, variables, (RUN, str(cores)))
    return beside.run(asked, folder, starter)


@pytest.mark.rare
@pytest.mark.ranks
@pytest.mark.parametrize(
    ("operations", "sizes"),
    [(tuple(BENCHMARKS), (1024,)), (("bcast",), (8, 2**23))],
    ids=["every operation", "more than IMB's own largest size"],
)
def test_the_real_program_measures_what_a_launch_asks_for(
    operations: tuple[str, ...], sizes: tuple[int, ...], tmp_path: Path
) -> None:
    code, text = run(launch(operations, *sizes), tmp_path)
    assert code == 0, text
    result = json.loads((tmp_path / "result.json").read_text())
    samples = np.load(tmp_path / "samples.npz")
    assert {(cell["operation"], cell["bytes"]) for cell in result["cells"]} == {
        (operation, size) for operation in operations for size in sizes
    }
    for cell in result["cells"]:
        seconds = samples[cell["samples"]]
        assert seconds.shape == (23, len(cell["columns"]))
        assert (np.diff(seconds, axis=1) >= 0).all()  # least, mean, greatest
        assert (seconds > 0).all()
    assert "Intel(R) MPI" in result["environment"]["versions"]["mpi"]
    assert result["external"]["version"].startswith("Intel(R) MPI Benchmarks")
    cpus = [rank["cpu"] for rank in result["ranks"]]
    assert len(set(cpus)) == min(2, passthrough.cores())


@pytest.mark.ranks
def test_a_program_that_fails_is_told_with_its_own_words(tmp_path: Path) -> None:
    code, text = run(launch(("bcast",), 8), tmp_path, I_MPI_HYDRA_BOOTSTRAP="pigeons")
    assert code != 0
    assert "pigeons" in text
    assert not (tmp_path / "result.json").exists()
