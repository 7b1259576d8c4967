"""An environment that a site provides: asked what it holds, refused, or measured with."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.catalogue import spec
from experiments.model.environment import EnvironmentId
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment
from experiments.provision import mpi_wheels as mpi_provision
from experiments.provision import site_python
from experiments.results import store
from tests.tiny_campaign import tiny

VERSIONS = {"mpi": "MPICH 4", "mpi4py": "4.1", "numpy": "2.4"}


def experiment(mpi: str = "mpich", *environments: str) -> Experiment:
    quick = spec.load("quick")
    ids = tuple(map(EnvironmentId.parse, environments or ("host",)))
    return replace(quick, launches=replace(quick.launches, mpis=(mpi,), environments=ids))


def answering(folder: Path, line: str) -> Path:
    """An environment with a Python that does what a shell line does."""
    python = folder / "bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{line}\n")
    python.chmod(0o755)
    return folder


def holding(folder: Path, **versions: str) -> Path:
    held = {"vendor": "MPICH", "versions": VERSIONS | versions}
    return answering(folder, f"echo '{json.dumps(held)}'")


def test_what_cannot_run_ranks_is_refused(tmp_path: Path) -> None:
    lacking = "echo ModuleNotFoundError: No module named numpy >&2; exit 1"
    with pytest.raises(ExperimentsError, match=r"ranks: .*named numpy; it"):
        site_python.ask(answering(tmp_path / "lacking", lacking))
    strange = 'echo \'{"vendor": "MVAPICH", "versions": {}}\''
    with pytest.raises(ExperimentsError, match="against MVAPICH; known are Open MPI, "):
        site_python.ask(answering(tmp_path / "strange", strange))
    with pytest.raises(ExperimentsError, match=r"is not an environment: there is no .*bin/python"):
        site_python.ask(tmp_path)


def test_another_mpi_than_asked_for_is_refused(tmp_path: Path) -> None:
    folder = holding(tmp_path / "env")
    assert site_python.ready(folder, experiment(), print).flavour == "mpich"
    with pytest.raises(ExperimentsError, match=r"holds MPICH 4 and .* openmpi: pass --mpi mpich"):
        site_python.ready(folder, experiment("openmpi"), print)
    with pytest.raises(ExperimentsError, match="the campaign runs on vm:plain: leave it out"):
        site_python.ready(folder, experiment("mpich", "vm:plain"), print)


def test_containers_with_another_mpi_are_refused_and_with_the_same_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, same = holding(tmp_path / "ours"), holding(tmp_path / "same", libc="glibc 2.40")
    other = holding(tmp_path / "other", mpi="MPICH 3", numpy="1.26")
    monkeypatch.setattr(mpi_provision, "ensure", lambda flavour, say: ours)
    both = experiment("mpich", "host", "docker")
    site_python.ready(same, both, print)
    message = (
        r"MPICH 3 there, MPICH 4 in docker; numpy 1.26 there, 2.4 in docker. Measure .* without"
    )
    with pytest.raises(ExperimentsError, match=message):
        site_python.ready(other, both, print)
    site_python.ready(other, experiment(), print)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without hbmcomm and without an mpiexec: that of the MPI is on PATH."""
    ours = mpi_provision.ensure("mpich", print)
    folder = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (held,) = ours.glob("lib/python3*/site-packages")
    for name in ("numpy", "numpy.libs", "mpi4py", "cffi", "_cffi_backend*", "*.dist-info"):
        for path in held.glob(name):
            if not path.name.startswith("hbmcomm"):
                (packages / path.name).symlink_to(path)
    for path in (ours / "lib").iterdir():
        if not path.name.startswith("python"):
            (folder / "lib" / path.name).symlink_to(path)
    monkeypatch.setenv("PATH", f"{ours}/bin{os.pathsep}{os.environ['PATH']}")
    return folder


def ran(driver: Any, *words: str, code: int = 0) -> str:
    """What the command `run` prints about its way."""
    process = driver.start("run", *words)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code, errors
    return str(errors)


@pytest.mark.ranks
def test_a_host_arm_runs_and_resumes_on_it(environment: Path, tmp_path: Path, driver: Any) -> None:
    toml, out = tmp_path / "tiny.toml", tmp_path / "out"
    toml.write_text(tiny(launches={"mpis": ["mpich"]}))
    begun = ("--experiment", str(toml), "--out", str(out), "--python", str(environment))
    ran(driver, *begun)
    (name,) = store.finished(out)
    header = store.read_header(out)
    first = store.read_result(out, name)
    (out / "launches" / f"{name}.json").unlink()
    other = {**header["python_versions"], "mpi": "MPICH 3"}
    store.write_json(out / "campaign.json", {**header, "python_versions": other})
    again = ("--resume", "--out", str(out), "--python", str(environment))
    assert "mpi: MPICH 3 then, MPICH" in ran(driver, *again, code=1)
    store.write_json(out / "campaign.json", header)
    assert f"give it again: ./inv run --resume --out {out}" in ran(driver, *again[:3], code=1)
    ran(driver, *again)
    for result in (first, store.read_result(out, name)):
        assert f"{environment}/bin/python -P -m experiments" in result.command
        assert "/.mpi/mpich/bin/mpiexec -n 2" in result.command
        assert result.facts.versions["hbmcomm"] == "not installed"
