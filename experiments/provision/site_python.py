"""A Python environment of the site, with mpi4py built against its MPI: asked, not made."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment
from experiments.processes import executables
from experiments.processes.executables import captured
from experiments.provision import mpi_wheels

VENDORS = {"Open MPI": "openmpi", "MPICH": "mpich", "Intel MPI": "impi"}
"""MPIs by the vendor that mpi4py names."""
SHARED = ("mpi", "mpi4py", "numpy")
"""Versions in which arms may not differ; every other difference is listed beside the result."""
PROBE = """
import json, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
from experiments.machine import versions
print(json.dumps({"vendor": MPI.get_vendor()[0], "versions": versions.versions()}))
"""
PATIENCE = 120.0  # seconds; file systems of clusters are slow to start Python


@dataclass(frozen=True)
class SitePython:
    """The MPI of an environment, one of MPIS; versions of its Python and packages, by name."""

    flavour: str
    versions: Mapping[str, str]


def ready(folder: Path, experiment: Experiment, say: Callable[[str], None]) -> SitePython:
    """The environment in a folder, found fit for the host arm of an experiment.

    Args:
        say: takes what is done to compare it with what containers hold.

    Raises:
        ExperimentsError: it lacks something, has another MPI than was asked for, or arms in
            containers would hold another MPI, mpi4py or NumPy.
    """
    asked = experiment.launches
    elsewhere = [
        environment
        for environment in asked.environments
        if environment.is_emulated or environment.on_hosts
    ]
    if elsewhere:
        raise ExperimentsError(
            f"--python is for arms on this machine or on nodes, and the campaign runs on "
            f"{elsewhere[0]}: leave it out"
        )
    site_python = ask(folder)
    if asked.mpis != (site_python.flavour,):
        raise ExperimentsError(
            f"{folder} holds {site_python.versions['mpi']} and the campaign asks for "
            f"{', '.join(asked.mpis)}: pass --mpi {site_python.flavour}"
        )
    containers = [
        str(environment) for environment in asked.environments if environment.is_container
    ]
    if containers:
        ours = ask(mpi_wheels.ensure(site_python.flavour, say))  # from the wheels that an image has
        _refuse_others(folder, site_python, ours, containers)
    return site_python


def ask(folder: Path) -> SitePython:
    """What an environment holds; starts its Python, and no MPI.

    Raises:
        ExperimentsError: there is none, or it cannot import what ranks need.
    """
    python = folder / "bin/python"
    if not os.access(python, os.X_OK):
        raise ExperimentsError(f"--python {folder} is not an environment: there is no {python}")
    try:
        environment = {**os.environ, **variables(), "PYTHONSAFEPATH": "1"}  # one may lack -P
        done = captured([python, "-c", PROBE], env=environment, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExperimentsError(f"{python} does not answer: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no error was printed"])[-1]
        raise ExperimentsError(
            f"{python} cannot run ranks: {last}; it needs numpy, cffi and mpi4py built against the "
            "site's MPI, and the modules of that MPI loaded"
        )
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if values["vendor"] not in VENDORS:
        raise ExperimentsError(
            f"mpi4py of {folder} is built against {values['vendor']}; known are "
            f"{', '.join(VENDORS)}: choose an environment with one of these"
        )
    return SitePython(VENDORS[values["vendor"]], values["versions"])


def variables() -> dict[str, str]:
    """With which its Python finds this checkout, where the project is not installed."""
    return {"PYTHONPATH": str(ROOT)}


def mpiexec(folder: Path) -> Path:
    """What starts its ranks: a program of the environment, else of the MPI that is loaded."""
    own = folder / "bin/mpiexec"
    return own if own.exists() else Path(executables.find(own.name) or own)


def _refuse_others(
    folder: Path, site_python: SitePython, ours: SitePython, names: list[str]
) -> None:
    differing = [
        f"{name} {site_python.versions[name]} there, {ours.versions[name]} in {', '.join(names)}"
        for name in SHARED
        if site_python.versions[name] != ours.versions[name]
    ]
    if differing:
        raise ExperimentsError(
            f"arms that hold different software cannot be compared: {'; '.join(differing)}. "
            f"Measure {folder} in a campaign without {', '.join(names)}"
        )
