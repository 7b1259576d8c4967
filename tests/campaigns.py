"""A small world to measure in: launch medians by hand, and results folders by results' own writer.

Times follow a plain model (latency plus bytes over bandwidth) with seeded noise, so that a test can
say what a figure must show. tests/conftest.py makes the fixtures known to all tests.
"""

import copy
import functools
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.analysis.campaign import Campaign
from experiments.analysis.reading import COLUMNS
from experiments.baselines.launches import COUNTERPARTS, measures
from experiments.catalogue import spec
from experiments.model.arms import named
from experiments.model.environment import BARE_HOST
from experiments.model.launch import Cell, Launch
from experiments.results.formats import HEADER
from experiments.schedule.blocks import schedule
from tests.launched import make_launch
from tests.stored_launches import begin, finish

MPI = {"openmpi": "Open MPI v5.0.11", "mpich": "MPICH 5.0.2", "impi": "Intel MPI 2021.18"}
SIZES = (1024, 16384, 262144, 4194304)
TABLES = {
    name for name, value in vars(Campaign).items() if isinstance(value, functools.cached_property)
}


def seconds(cell: dict[str, Any], rng: np.random.Generator) -> float:
    """One launch median of the model."""
    bandwidth = 8e9 / cell["ranks"] * (3.2 if cell["kind"] == "hbw" and not cell["emulated"] else 1)
    time = 1.2e-6 * np.log2(2 * cell["ranks"]) + cell["bytes"] / bandwidth
    factors = {"bcast": 1.0, "gather": 1.5, "allreduce": 2.2, "copy": 0.5, "decode_step": 1.0}
    factors |= {"tensor_push": 1.0}
    time *= factors[cell["operation"]]
    time *= {"direct": 0.5, "pickle": 1.8, "gloo": 4.0, "grpc": 8.0}.get(cell["transport"], 1.0)
    time *= 1.25 if cell["environment"] != "host" and cell["bytes"] >= 4 * 2**20 else 1.0
    if cell["operation"] != "copy":
        lost = cell["transport"] == "mpi" and cell["mpi"] == "openmpi"
        if lost and cell["profile"] == "default" and cell["bytes"] >= 2**18:
            time *= 1.7  # single copy
        time *= 12.0 if cell["layout"] == "isolated" else 1.0
    time *= 0.8 if cell["transport"] == "imb" else 1.0
    time += 300e-6 if cell["transport"] in ("threads", "shared_memory", "queues") else 0
    time *= 1.4 if cell["locality"] == "remote" else 1.0
    time *= 1.1 if cell["binding"] == "spread" else 1.0
    return float(time * rng.lognormal(0, 0.02))


Times = Callable[[dict[str, Any], np.random.Generator], float]


def make_cells(
    *,
    arms: tuple[str, ...] = ("host", "host-again", "docker-tuned-one"),
    mpis: tuple[str, ...] = ("openmpi",),
    blocks: int = 6,
    ranks: tuple[int, ...] = (2,),
    bindings: tuple[str, ...] = ("packed",),
    localities: tuple[str, ...] = ("local",),
    operations: tuple[str, ...] = ("bcast", "gather", "allreduce"),
    transports: tuple[str, ...] = ("direct", "mpi", "pickle"),
    kinds: tuple[str, ...] = ("regular", "hbw"),
    sizes: tuple[int, ...] = SIZES,
    emulated: bool = True,
    machine: str = "no",
) -> pd.DataFrame:
    """Launch medians as reading.load gives them; "imb" is the benchmark in C."""
    rng = np.random.default_rng(7)
    rows = []
    places = list(product(range(blocks), mpis, ranks, bindings))
    for number, (_, mpi, count, binding) in enumerate(places):
        every = product(arms, operations, transports, kinds, localities, sizes)
        for arm, *inside in every:
            names = ("operation", "transport", "kind", "locality", "bytes")
            parsed = named(arm)
            cell = dict(zip(names, inside, strict=True)) | {
                "block": number,
                "arm": arm,
                "environment": str(parsed.environment),
                "profile": parsed.profile,
                "layout": parsed.layout,
                "mpi": mpi,
                "ranks": count,
                "binding": binding,
                "dtype": "float32",
                "cadence": "isolated",
                "cache": "warm",
                "setting": "",
                "form": "plain",
                "group": 1,
                "n": 200,
                "unstable": False,
                "emulated_machine": machine,
            }
            if arm == "imb":
                if mpi != "impi" or cell["transport"] != "mpi" or cell["kind"] != "regular":
                    continue
                cell["transport"] = "imb"
            if arm in COUNTERPARTS:
                if not measures(arm, Cell(*inside)):
                    continue
                cell["transport"] = COUNTERPARTS[arm][cell["transport"]]
            cell["emulated"] = emulated and cell["kind"] == "hbw"
            median = seconds(cell, rng)
            rows.append(
                cell
                | {"median_s": median, "low_s": median * 0.99, "high_s": median * 1.01}
                | {"p95_s": median * 1.1, "p99_s": median * 1.2, "min_s": median * 0.9}
                | {"bound_s": cell["bytes"] / 2e10}
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def of_cells(
    cells: pd.DataFrame, blocks: int = 6, missing: dict[str, str] | None = None
) -> Campaign:
    """A campaign with these launch medians; `missing` is what it asked for and has not."""
    asked = spec.load("quick")
    none = cells.head(0)
    campaign = Campaign(
        Path(),
        "quick",
        replace(asked, launches=replace(asked.launches, blocks=blocks)),
        dict(HEADER),
        [],
        *(cells, none, none),
        [],
    )
    return changed(campaign, unmeasured=missing or {})


def changed(campaign: Campaign, **attributes: Any) -> Campaign:
    """The campaign with these attributes; tables that it has already stay as they are."""
    other = copy.copy(campaign)
    vars(other).update(attributes)
    return other


def find(*, missing: dict[str, str] | None = None, blocks: int = 6, **levels: Any) -> Campaign:
    """A campaign of the model with these levels, the caller's own."""
    model = _model(tuple((missing or {}).items()), blocks, **levels)
    own = {field.name: copy.deepcopy(getattr(model, field.name)) for field in fields(model)}
    return changed(_Copy(**own), model=model)


@functools.cache
def _model(missing: tuple[tuple[str, str], ...], blocks: int, **levels: Any) -> Campaign:
    return of_cells(make_cells(blocks=blocks, **levels), blocks, dict(missing))


class _Copy(Campaign):
    """A copy of `model`, with every table of it: each is computed once for all tests, when one asks
    for it, whatever that test has changed in its own campaign."""

    def __getattribute__(self, name: str) -> Any:
        own = super().__getattribute__("__dict__")
        if name in TABLES and name not in own and "model" in own:
            own[name] = copy.deepcopy(getattr(own["model"], name))
        return super().__getattribute__(name)


def write_campaign(
    folder: Path,
    *,
    missing: tuple[str, ...] = (),
    docker: bool = True,
    hbw: bool = True,
    slim: bool = False,
    machine: str = "",
    times: Times = seconds,
    seed: int = 3,
    **flags: Any,
) -> Path:
    """A results folder of the quick experiment, as the runner leaves it.

    Args:
        machine: the emulated machine that everything ran on, instead of the host.
        times: the model of a launch's median, and the seed of its noise.
        slim: only direct and mpi, only in regular memory.
        missing: lines of campaign.json that say which arm is missing and why.
        hbw: without it, every cell in that kind is skipped.
        flags: as spec.restrict() takes them.
    """
    environments = "host,docker" if docker else "host"
    if machine:
        environments = f"vm:{machine},vm-docker:{machine}"
    usual = {"environments": environments, "blocks": 2, "sizes": "1KiB,64KiB,4MiB"}
    experiment = spec.restrict(spec.load("quick"), emulate_hbw=True, **usual | flags)
    if slim:
        factors = replace(experiment.factors, transports=("direct", "mpi"), kinds=("regular",))
        experiment = replace(experiment, factors=factors)
    plan = schedule(experiment, 1)
    begin(
        folder,
        experiment,
        plan,
        missing=list(missing),
        versions={"hbmcomm": "0.1.0", "python": "3.11.2"},
        git="0123abcd",
        machine={"processor": "Example <CPU> & co", "cores": "2", "nodes": "4 GiB"},
        command=["./inv", "run", "--experiment", "quick"],
    )
    rng = np.random.default_rng(seed)
    for launch in (launch for block in plan for launch in block.launches):
        _finish(folder, launch, rng, hbw, machine, times)
    return folder


def _finish(
    folder: Path,
    launch: Launch,
    rng: np.random.Generator,
    hbw: bool,
    machine: str,
    times: Times,
) -> None:
    copies = sorted({(cell.kind, cell.bytes) for cell in launch.cells})
    every = [Cell("copy", "mpi", kind, "local", size) for kind, size in copies]
    cells, samples = [], {}
    for number, cell in enumerate([*every, *launch.cells]):
        if cell.kind == "hbw" and not hbw:
            cells.append(vars(cell) | {"skipped": "hbw: this machine has no high-bandwidth memory"})
            continue
        levels = vars(cell) | {"emulated": cell.kind == "hbw" and not machine}
        median = times(
            levels
            | {"ranks": launch.ranks, "binding": launch.binding, "mpi": launch.mpi}
            | {"environment": str(launch.environment), "profile": launch.profile}
            | {"layout": launch.layout},
            rng,
        )
        samples[f"c{number}"] = median * rng.lognormal(0, 0.03, (40, launch.ranks))
        cells.append(levels | {"samples": f"c{number}", "warmup": 10, "group": 1})
    inside = launch.environment != BARE_HOST
    environment: dict[str, Any] = {
        "versions": {
            "mpi": MPI[launch.mpi],
            "libc": "2.36",
            "python": "3.11.2" if inside else "3.11.7",
        },
        "seccomp": "filter" if inside else "disabled",
        "datapath": {
            "cma": "refused (EPERM)" if launch.profile == "default" else "works",
            "kcmp": "refused (EPERM)" if launch.profile == "default" else "works",
            "shm_bytes": "201326592",
        },
        "shm_bytes": 67108864,
        "load": float(rng.random()),
    }
    ranks = []
    if machine:
        there = make_launch(machine, ranks=launch.ranks, localities=("local",))
        environment |= there["environment"]
        ranks = there["ranks"]
    command = f"{launch.environment} run {launch.name} --mpi {launch.mpi}"
    more = {"environment": environment, "ranks": ranks, "command": command}
    finish(folder, launch, cells, samples, **more)


@pytest.fixture(scope="session")
def campaign_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both arms, two blocks, emulated HBM."""
    return write_campaign(tmp_path_factory.mktemp("results") / "quick")


@pytest.fixture(scope="session")
def emulated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two blocks on an emulated machine and in Docker there; few cells."""
    folder = tmp_path_factory.mktemp("results") / "emulated"
    return write_campaign(folder, machine="knl-snc4-flat", profiles="tuned", layouts="one")


@pytest.fixture(scope="session")
def arms_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two profiles in two layouts with two MPIs; few cells."""
    folder = tmp_path_factory.mktemp("results") / "arms"
    levels = {"profiles": "default,tuned", "layouts": "one,isolated", "mpis": "openmpi,mpich"}
    return write_campaign(folder, slim=True, **levels)


@pytest.fixture(scope="session")
def dockerless_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The docker arm is missing."""
    why = "docker: no engine answers; install one: apt-get install docker.io"
    folder = tmp_path_factory.mktemp("results") / "host-only"
    return write_campaign(folder, missing=(why,), docker=False)


@pytest.fixture(scope="session")
def skipping_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both arms, no high-bandwidth memory."""
    return write_campaign(tmp_path_factory.mktemp("results") / "no-hbm", hbw=False)
