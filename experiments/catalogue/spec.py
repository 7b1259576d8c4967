"""The experiments of the catalogue, and what a user's flags change of them."""

from pathlib import Path
from typing import Any

from experiments.model import quantities
from experiments.model.contender_names import (
    AGAIN,
    CALLS,
    DIRECT,
    FORMS,
    MPI_ITSELF,
    NO_MPI,
    OTHER_AGAIN,
    OTHER_BUILD,
    PEERS,
)
from experiments.model.environment import (
    BARE_HOST,
    ENVIRONMENTS,
    LAYOUTS,
    MPIS,
    PROFILES_OF_ALL,
)
from experiments.model.errors import SpecError, unknown
from experiments.model.experiment import KINDS, MPIS_ARE_ARMS, Experiment
from experiments.model.launch import EXTERNAL, NUMPY, OPERATIONS
from experiments.model.validation import patched, toml

CATALOGUE = Path(__file__).parent


def names() -> list[str]:
    """The experiments of the catalogue."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    """By name, which is unique; the folders only keep them apart for readers."""
    return {path.stem: path for path in CATALOGUE.rglob("*.toml")}


def load(name: str) -> Experiment:
    """An experiment by its name in the catalogue, or by the path of a .toml file."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.exists():
            raise SpecError(
                f"experiment {name}: no such file; ./inv run --list shows those there are"
            )
    elif name not in _files():
        if name.lower() in {spelling.lower() for call in CALLS.items() for spelling in call}:
            raise SpecError(
                f"experiment {name!r}: that is an operation; measure it with --ops {name}"
            )
        raise SpecError(unknown("experiment", name, names()))
    else:
        path = _files()[name]
    return Experiment.from_dict({"name": path.stem} | toml(path, path.name), path.name)


def restrict(
    experiment: Experiment,
    *,
    environments: str | None = None,
    profiles: str | None = None,
    layouts: str | None = None,
    mpis: str | None = None,
    external: str | None = None,
    operations: str | None = None,
    forms: str | None = None,
    kinds: str | None = None,
    ranks: str | None = None,
    sizes: str | None = None,
    blocks: int | None = None,
    nodes: int | None = None,
    launcher: str | None = None,
    emulate_hbw: bool = False,
    cadence: str | None = None,
    private: bool = False,
    peers: str | None = None,
    tuned: bool = False,
    other_build: bool = False,
) -> Experiment:
    """The experiment with a user's flags in place of what its file says.

    Sizes that are asked for are measured with every transport. Without the host, programs that run
    there alone are left out, unless they are asked for.

    Args:
        private: over ordinary NumPy arrays, of regular memory.
        peers: of a bench: MPIs, which are its arms, and other contenders.
        tuned: whether each of these MPIs is an arm in each of its settings.
        other_build: whether another build of the library takes part in a bench.
    """
    launches: dict[str, Any] = {}
    factors: dict[str, Any] = {}
    calls = tuple(CALLS) if experiment.launches.arms == MPIS_ARE_ARMS else OPERATIONS
    for table, key, text, every in (
        (launches, "environments", environments, tuple(map(str, ENVIRONMENTS))),
        (launches, "profiles", profiles, PROFILES_OF_ALL),
        (launches, "layouts", layouts, LAYOUTS),
        (launches, "mpis", mpis, MPIS),
        (launches, "external", external, EXTERNAL),
        (factors, "operations", operations, calls),
        (factors, "forms", forms, FORMS),
        (factors, "kinds", kinds, KINDS),
    ):
        if text:
            table[key] = list(every if text == "all" else map(str.strip, text.split(",")))
    asked = experiment.launches
    if not external and str(BARE_HOST) not in map(
        str, launches.get("environments", asked.environments)
    ):
        launches["external"] = []  # the file's own need the host, which was left out
    if ranks:
        launches["ranks"] = quantities.parse_ranks(ranks)
    for key, value in (("blocks", blocks), ("nodes", nodes), ("launcher", launcher or None)):
        if value is not None:
            launches[key] = value
    if sizes:
        factors |= {"sizes": sizes, "largest": {}}
    if peers:
        launches["mpis"], factors["transports"] = _peers(peers)
    taking_part = factors.get("transports", experiment.factors.transports)
    if tuned and MPI_ITSELF in taking_part:
        launches["tuned"] = launches.get("mpis", asked.mpis)
    if other_build:
        factors["transports"] = (*taking_part, OTHER_BUILD, OTHER_AGAIN)
    if private:
        factors |= {"buffers": (NUMPY,), "kinds": ("regular",)}
    source = "the command line"
    timing: dict[str, Any] = {"emulate_hbw": True} if emulate_hbw else {}
    timing |= {"cadence": cadence} if cadence else {}
    tables = {
        "factors": patched(experiment.factors, factors, source),
        "launches": patched(asked, launches, source),
        "measurement": patched(experiment.measurement, timing, source),
    }
    chosen = patched(experiment, tables, source)
    for flag, text in (("profiles", profiles), ("layouts", layouts)):
        if text and not any(environment.has_engine for environment in chosen.launches.environments):
            raise SpecError(
                f"--{flag} {text} is for containers of an engine, and the campaign has "
                f"{', '.join(map(str, chosen.launches.environments))}: drop --{flag}, or ask for "
                "docker in --env"
            )
    return chosen


def _peers(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The MPIs of a bench, which are its arms, and its contenders; all MPIs are one contender."""
    chosen = quantities.parse_names("--peers", text.split(","), {name: name for name in PEERS})
    mpis = tuple(name for name in MPIS if name in chosen)
    others = [name for name in NO_MPI if name in chosen]
    itself = [MPI_ITSELF] if mpis else []
    return mpis or MPIS[:1], (DIRECT, AGAIN, *itself, *others)  # one MPI starts the ranks anyway
