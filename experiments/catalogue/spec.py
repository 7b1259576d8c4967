"""What a file in catalogue/ may say, and the experiment that it makes.

Knows nothing of how a campaign is run. A message for a typo names the file, the key and the nearest
valid name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from experiments.catalogue import places
from experiments.catalogue.workload_check import refusal
from experiments.model import quantities
from experiments.model.contender_names import CALLS, CONTENDERS, FORMS, TORCH_GROUPS
from experiments.model.environment import (
    BARE_HOST,
    ENVIRONMENTS,
    HOSTS,
    LAUNCHERS,
    LAYOUTS,
    MPIS,
    ON_CLUSTER,
    ON_HOSTS,
    PROFILES,
    RATE,
    EnvironmentId,
    check_hosts,
    emulated,
)
from experiments.model.errors import SpecError, unknown
from experiments.model.experiment import (
    ARMS,
    BINDINGS,
    BUFFERS,
    CACHES,
    CADENCES,
    DTYPES,
    EXTERNAL,
    KINDS,
    LOCALITIES,
    MPIS_ARE_ARMS,
    OPERATIONS,
    TRANSPORTS,
    Experiment,
    Factors,
    Launches,
    Measurement,
)
from experiments.model.validation import (
    AnyNames,
    Count,
    FileName,
    Flag,
    Form,
    Line,
    Name,
    Names,
    among,
    read,
    toml,
)
from experiments.model.workloads import CONTENDERS as OF_WORKLOADS
from experiments.model.workloads import WORKLOADS

CATALOGUE = Path(__file__).parent
SIZES = "1KiB:16MiB:4"
MOST_BLOCKS = 10_000
"""More would take months."""
MOST_LEVELS = 1000  # sizes, or numbers of ranks
IN_ENVIRONMENTS = tuple(dict.fromkeys((*TRANSPORTS, *TORCH_GROUPS, *OF_WORKLOADS)))
"""Transports where environments are the arms."""
HOSTS_EXAMPLE = "hosts:4x100mbit"
ENTRANTS = tuple(dict.fromkeys((*IN_ENVIRONMENTS, *CONTENDERS)))


def _sizes(given: object) -> object:
    try:
        return quantities.parse_sizes(given) if isinstance(given, str) else given
    except SpecError as error:
        raise ValueError(str(error)) from None


def _largest(limits: object, info: ValidationInfo) -> object:
    """The largest size of each transport that has one, in bytes; each keeps a size to measure."""
    transports, sizes = info.data.get("transports"), info.data.get("sizes")
    if not isinstance(limits, Mapping) or transports is None or not sizes:
        return limits
    found = {}
    for transport, limit in limits.items():
        if transport not in transports:
            raise ValueError(f"{unknown('transport', transport, transports)} [largest]")
        found[transport] = quantities.parse_size(limit) if isinstance(limit, str) else limit
        if type(found[transport]) is not int or found[transport] < min(sizes):
            raise ValueError(
                f"largest {limit!r} leaves {transport} none of the sizes in [factors]; "
                "write bytes, or leave the transport out"
            )
    return found


def _environments(names: object) -> object:
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        return names
    known = [*map(str, ENVIRONMENTS), *map(str, ON_CLUSTER), *map(str, emulated())]
    found = tuple(map(EnvironmentId.parse, names))
    for name, each in zip(names, found, strict=True):
        if each.is_emulated and each.machine.endswith(".toml"):
            raise ValueError(
                f"a campaign takes machines by name, from experiments/emulation/machines, and "
                f"{each} is a path: put the file there and ask for "
                f"{each.kind}:{Path(each.machine).stem}"
            )
        if each.on_hosts:
            _check_hosts(each)
        elif name not in known:
            raise ValueError(unknown("environments", name, [*known, HOSTS_EXAMPLE]))
    return tuple(dict.fromkeys(found))


def _check_hosts(asked: EnvironmentId) -> None:
    """Refuse emulated hosts that cannot be."""
    if asked.kind != HOSTS and asked.container not in ON_HOSTS:
        raise ValueError(
            f"{asked} asks for a container that emulated hosts do not have; they have "
            f"{', '.join(ON_HOSTS)}: write hosts-{ON_HOSTS[0]}:4x100mbit, or hosts:4x100mbit for "
            "ranks without one"
        )
    if not asked.rate:
        raise ValueError(
            f"{asked} does not say how many emulated hosts: write {HOSTS_EXAMPLE}, or hosts:4 for "
            f"links of {RATE}"
        )
    try:
        check_hosts(asked.hosts, asked.rate)
    except SpecError as error:
        raise ValueError(f"{asked}: {error}") from None


Several = Annotated[int, Field(strict=True, ge=1)]
ASCENDING = AfterValidator(lambda values: tuple(sorted(set(values))))
"""Sorts values and drops repeated ones."""


class _Factors(Form):
    """[factors] of a file."""

    dtype: Annotated[Name, among(*DTYPES)] = Factors.dtype
    operations: Annotated[Names, among(*CALLS, *WORKLOADS, shown=CALLS)] = Factors.operations
    transports: Annotated[Names, among(*ENTRANTS)] = Factors.transports
    kinds: Annotated[Names, among(*KINDS)] = Factors.kinds
    localities: Annotated[Names, among(*LOCALITIES)] = Factors.localities
    buffers: Annotated[Names, among(*BUFFERS)] = Factors.buffers
    sizes: Annotated[
        tuple[Several, ...],
        Field(
            min_length=1,
            max_length=MOST_LEVELS,
            description="positive multiples of an element's bytes: FIRST:LAST:FACTOR, or a list",
        ),
        BeforeValidator(_sizes),
        ASCENDING,
    ] = quantities.parse_sizes(SIZES)
    largest: Annotated[
        dict[str, int],
        Field(description='a table: largest = { pickle = "4MiB" }'),
        BeforeValidator(_largest),
    ] = Field(default_factory=dict)
    forms: Annotated[Names, among(*FORMS)] = Factors.forms

    @model_validator(mode="after")
    def _whole_elements(self) -> Self:
        itemsize = int(self.dtype[-2:]) // 8
        if any(size % itemsize for size in self.sizes):
            raise ValueError(
                f"sizes {list(self.sizes)} must be multiples of the {itemsize} bytes of one "
                f"{self.dtype}"
            )
        return self


class _Launches(Form):
    """[launches] of a file."""

    environments: Annotated[
        tuple[EnvironmentId, ...],
        Field(min_length=1, max_length=MOST_LEVELS, description="a list of names"),
        BeforeValidator(_environments),
    ] = Launches.environments
    profiles: Annotated[Names, among(*PROFILES)] = Launches.profiles
    layouts: Annotated[Names, among(*LAYOUTS)] = Launches.layouts
    mpis: Annotated[Names, among(*MPIS)] = Launches.mpis
    external: Annotated[AnyNames, among(*EXTERNAL)] = Launches.external
    ranks: Annotated[
        tuple[Several, ...],
        Field(
            min_length=1, max_length=MOST_LEVELS, description="a list of whole numbers from 1 up"
        ),
        ASCENDING,
    ] = Launches.ranks
    bindings: Annotated[Names, among(*BINDINGS)] = Launches.bindings
    blocks: Annotated[
        Several,
        Field(le=MOST_BLOCKS, description=f"a whole number, 1 or more, {MOST_BLOCKS} at most"),
    ] = Launches.blocks
    aa_pair: Flag = Launches.aa_pair
    arms: Annotated[Name, among(*ARMS)] = Launches.arms
    tuned: Annotated[AnyNames, among(*MPIS)] = Launches.tuned
    nodes: Count = Launches.nodes
    launcher: Annotated[Name, among(*LAUNCHERS)] = Launches.launcher

    @model_validator(mode="after")
    def _can_run(self) -> Self:
        places.check(Launches(**dict(self)))
        needed = {"host"} | ({"impi"} if "IMB" in self.external else set())
        names = ", ".join(map(str, self.environments))
        if self.external and not needed <= {*map(str, self.environments), *self.mpis}:
            needs = " with impi" if "impi" in needed else ""
            raise ValueError(
                f"{', '.join(self.external)} in [launches] runs on the host{needs}, and the "
                f"experiment has {names} with {', '.join(self.mpis)}: "
                f"add {' and '.join(sorted(needed))}"
            )
        return self


class _Measurement(Form):
    """[measurement] of a file."""

    cadence: Annotated[Name, among(*CADENCES)] = Measurement.cadence
    cache: Annotated[Name, among(*CACHES)] = Measurement.cache
    time_cap: Annotated[float, Field(strict=True, gt=0, description="seconds, more than 0")] = (
        Measurement.time_cap
    )
    min_iterations: Count = Measurement.min_iterations
    max_iterations: Count = Measurement.max_iterations
    emulate_hbw: Flag = Measurement.emulate_hbw

    @model_validator(mode="after")
    def _least_first(self) -> Self:
        if self.min_iterations > self.max_iterations:
            raise ValueError(
                f"min_iterations {self.min_iterations} is more than max_iterations "
                f"{self.max_iterations}"
            )
        return self


class _Experiment(Form):
    """A file of the catalogue."""

    name: FileName
    title: Line
    question: Line
    factors: _Factors = _Factors()
    launches: _Launches = _Launches()
    measurement: _Measurement = _Measurement()

    @model_validator(mode="after")
    def _arms_meet_their_contenders(self) -> Self:
        known = CONTENDERS if self.launches.arms == MPIS_ARE_ARMS else IN_ENVIRONMENTS
        for transport in self.factors.transports:
            if transport not in known:
                raise ValueError(f"{unknown('transports', transport, known)} [factors]")
        return self


def from_dict(values: Mapping[str, Any], source: str) -> Experiment:
    """The validated experiment.

    Raises:
        SpecError: naming source, key, and the nearest name that would be valid.
    """
    found = read(_Experiment, values, source)
    experiment = Experiment(
        name=found.name,
        title=found.title,
        question=found.question,
        factors=Factors(**dict(found.factors)),
        launches=Launches(**dict(found.launches)),
        measurement=Measurement(**dict(found.measurement)),
    )
    if reason := refusal(experiment):
        raise SpecError(f"{source}: {reason}")
    return experiment


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
        if name.lower() in {each.lower() for call in CALLS.items() for each in call}:
            raise SpecError(
                f"experiment {name!r}: that is an operation; measure it with --ops {name}"
            )
        raise SpecError(unknown("experiment", name, names()))
    else:
        path = _files()[name]
    return from_dict({"name": path.stem} | toml(path, path.name), path.name)


def restrict(
    experiment: Experiment,
    *,
    environments: str | None = None,
    profiles: str | None = None,
    layouts: str | None = None,
    mpis: str | None = None,
    external: str | None = None,
    operations: str | None = None,
    kinds: str | None = None,
    ranks: str | None = None,
    sizes: str | None = None,
    blocks: int | None = None,
    nodes: int | None = None,
    launcher: str | None = None,
    emulate_hbw: bool = False,
) -> Experiment:
    """The experiment with a user's flags in place of what its file says.

    Sizes that are asked for are measured with every transport. Without the host, programs that run
    there alone are left out, unless they are asked for.
    """
    values = experiment.to_dict()
    launches, factors = values["launches"], values["factors"]
    for table, key, text, every in (
        (launches, "environments", environments, tuple(map(str, ENVIRONMENTS))),
        (launches, "profiles", profiles, PROFILES),
        (launches, "layouts", layouts, LAYOUTS),
        (launches, "mpis", mpis, MPIS),
        (launches, "external", external, EXTERNAL),
        (factors, "operations", operations, OPERATIONS),
        (factors, "kinds", kinds, KINDS),
    ):
        if text:
            table[key] = list(every if text == "all" else map(str.strip, text.split(",")))
    if not external and str(BARE_HOST) not in launches["environments"]:
        launches["external"] = []  # the file's own need the host, which was left out
    if ranks:
        launches["ranks"] = quantities.parse_ranks(ranks)
    for key, asked in (("blocks", blocks), ("nodes", nodes), ("launcher", launcher or None)):
        if asked is not None:
            launches[key] = asked
    if sizes:
        factors["sizes"], factors["largest"] = sizes, {}
    values["measurement"]["emulate_hbw"] |= emulate_hbw
    found = from_dict(values, "the command line")
    for flag, text in (("profiles", profiles), ("layouts", layouts)):
        if text and not any(each.has_engine for each in found.launches.environments):
            raise SpecError(
                f"--{flag} {text} is for containers of an engine, and the campaign has "
                f"{', '.join(launches['environments'])}: drop --{flag}, or ask for docker in --env"
            )
    return found
