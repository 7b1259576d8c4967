"""IMB-MPI1 itself, over a launch of a campaign."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.catalogue import spec
from experiments.environments.host import OwnStarter
from experiments.jobs.execute import execute
from experiments.model.environment import BARE_HOST
from experiments.model.launch import Launch
from experiments.programs.external.imb import BENCHMARKS, FLAVOUR, RUN
from experiments.provision import passthrough
from experiments.provision.wheels import mpi
from experiments.schedule.blocks import schedule


def launch(operations: tuple[str, ...], *sizes: int) -> Launch:
    asked = spec.load("quick")
    factors = replace(asked.factors, operations=operations, sizes=sizes)
    launches = replace(
        asked.launches, environments=(BARE_HOST,), mpis=("impi",), external=("IMB",), ranks=(2,)
    )
    blocks = schedule(replace(asked, factors=factors, launches=launches), seed=1)
    return next(each for each in blocks[0].launches if each.program == "IMB")


def environment(variables: dict[str, str]) -> OwnStarter:
    prefix, cores = mpi.ensure("impi", print), passthrough.cores()
    return OwnStarter(FLAVOUR, prefix, cores, variables, RUN, (str(cores),))


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("operations", "sizes"),
    [(tuple(BENCHMARKS), (1024,)), (("bcast",), (8, 2**23))],
    ids=["every operation", "more than IMB's own largest size"],
)
def test_the_real_program_measures_what_a_launch_asks_for(
    operations: tuple[str, ...], sizes: tuple[int, ...], tmp_path: Path
) -> None:
    asked = launch(operations, *sizes)
    (tmp_path / "launch.json").write_text(json.dumps(asked.to_dict()))
    command = environment({}).command(asked, tmp_path)
    log = tmp_path / "log"
    assert execute(command, log, None, lambda: None) == 0, log.read_text()
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
    asked = launch(("bcast",), 8)
    (tmp_path / "launch.json").write_text(json.dumps(asked.to_dict()))
    unknown = {"I_MPI_HYDRA_BOOTSTRAP": "pigeons"}
    command = environment(unknown).command(asked, tmp_path)
    log = tmp_path / "log"
    assert execute(command, log, None, lambda: None) != 0
    assert "pigeons" in log.read_text()
    assert not (tmp_path / "result.json").exists()
