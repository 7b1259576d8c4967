"""An experiment: one question, and all that its answer needs. The one model of it, with its checks.

A file in catalogue/ holds one, flags change it, campaign.json keeps it. For the driver: ranks have
no pydantic, and read a Launch.
"""

from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.dataclasses import dataclass

import hbmcomm
from experiments.model.contender_names import CALLS, CONTENDERS, FORMS, PLAIN, TORCH_GROUPS
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
    VM_DOCKER,
    EnvironmentId,
    check_hosts,
    emulated,
    without_user_namespace,
)
from experiments.model.errors import SpecError, unknown
from experiments.model.launch import (
    ARENA,
    BINDINGS,
    BUFFERS,
    CACHES,
    CADENCES,
    EXTERNAL,
    TRANSPORTS,
    Measurement,
)
from experiments.model.mpi_settings import HBW_POLICIES
from experiments.model.quantities import parse_size, parse_sizes
from experiments.model.trials import Trial
from experiments.model.validation import (
    AnyNames,
    Count,
    FileName,
    Flag,
    Line,
    Name,
    Names,
    among,
    is_stored,
    read,
    whole,
)
from experiments.model.workloads import CONTENDERS as OF_WORKLOADS
from experiments.model.workloads import NEEDING_TORCH, WORKLOADS, nbytes

KINDS = hbmcomm.KINDS
DTYPES = ("float32", "float64", "int32", "int64")
LOCALITIES = ("local", "remote")
MPIS_ARE_ARMS = "mpis"
ARMS = ("environments", MPIS_ARE_ARMS)
"""What the arms of a block are; MPIs on the host, each in its settings, meet all contenders."""
IN_ENVIRONMENTS = tuple(dict.fromkeys((*TRANSPORTS, *TORCH_GROUPS, *OF_WORKLOADS)))
"""Transports where environments are the arms."""
ENTRANTS = tuple(dict.fromkeys((*IN_ENVIRONMENTS, *CONTENDERS)))
MOST_BLOCKS = 10_000
"""More would take months."""
MOST_LEVELS = 1000  # sizes, or numbers of ranks
HOSTS_EXAMPLE = "hosts:4x100mbit"
ENVIRONMENT = "^[A-Za-z0-9][A-Za-z0-9._:-]*$"
ADDED = {
    *("buffers", "forms", "thresholds", "trials", "arms", "tuned", "nodes", "launcher"),
    "hbw_policies",
}
"""Fields that the first campaigns of today's format lack."""


def _sizes(given: object) -> object:
    try:
        return parse_sizes(given) if isinstance(given, str) else given
    except SpecError as error:
        raise ValueError(str(error)) from None


def _largest(limits: object, info: ValidationInfo) -> object:
    """The largest size of each transport that has one, in bytes; each keeps a size to measure."""
    transports, sizes = info.data.get("transports"), info.data.get("sizes")
    if is_stored(info) or not isinstance(limits, Mapping) or transports is None or not sizes:
        return limits
    in_bytes = {}
    for transport, limit in limits.items():
        if transport not in transports:
            raise ValueError(f"{unknown('transport', transport, transports)} [largest]")
        in_bytes[transport] = parse_size(limit) if isinstance(limit, str) else limit
        if type(in_bytes[transport]) is not int or in_bytes[transport] < min(sizes):
            raise ValueError(
                f"largest {limit!r} leaves {transport} none of the sizes in [factors]; "
                "write bytes, or leave the transport out"
            )
    return in_bytes


def _environment(name: object, info: ValidationInfo) -> object:
    """The environment of a name; a stored one may be of a machine that this one does not know."""
    if not isinstance(name, str):
        return name
    asked = EnvironmentId.parse(name)
    if asked.on_hosts and (asked.hosts or not is_stored(info)):
        _check_hosts(asked)
    if is_stored(info) or asked.on_hosts:
        return asked
    if asked.is_emulated and asked.machine.endswith(".toml"):
        raise ValueError(
            f"a campaign takes machines by name, from experiments/emulation/machines, and {asked} "
            f"is a path: put the file there and ask for {asked.kind}:{Path(asked.machine).stem}"
        )
    known = [*map(str, ENVIRONMENTS), *map(str, ON_CLUSTER), *map(str, emulated())]
    if name not in known:
        raise ValueError(unknown("environments", name, [*known, HOSTS_EXAMPLE]))
    return asked


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


Environment = Annotated[
    EnvironmentId,
    BeforeValidator(_environment),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": ENVIRONMENT}),
]
ASCENDING = AfterValidator(lambda values: tuple(sorted(set(values))))
"""Sorts values and drops repeated ones."""
TABLE = ConfigDict(extra="forbid", use_attribute_docstrings=True)
"""Titles say what a value must be, texts below the fields what it means: docs/results-format.md."""


@dataclass(frozen=True, config=TABLE)
class Factors:
    """What varies inside a launch; every combination is a cell."""

    operations: Annotated[Names, among(*CALLS, *WORKLOADS, shown=CALLS)] = (
        "bcast",
        "gather",
        "allreduce",
    )
    """Collectives: `bcast`, `gather`, `allreduce`, ...; or steps: `ddp_step`, `fsdp2_step`,
    `decode_step`"""
    transports: Annotated[Names, among(*ENTRANTS)] = ("direct", "mpi")
    """How data moves: `direct`, `hierarchical`, `mpi`, `pickle`, `gloo`, `torch` (backend `hbm`);
    in a bench also `direct-again`, `objects`, `other-build`, `other-build-again`, `operators`,
    `vllm`, `deepspeed`, `oneccl`"""
    kinds: Annotated[Names, among(*KINDS)] = ("regular",)
    """Kinds of memory, as memkind spells them: `regular`, `hbw`, ..."""
    localities: Annotated[Names, among(*LOCALITIES)] = ("local",)
    """`local`: memory nearest to the rank; `remote`: another node's"""
    buffers: Annotated[Names, among(*BUFFERS)] = (ARENA,)
    """`arena`: memory that the ranks share, where a transport has it; `private`: each rank's own,
    through memkind; `numpy`: ordinary NumPy arrays; none stored: `arena`"""
    sizes: Annotated[
        tuple[Annotated[int, whole(1, 2**50)], ...],
        Field(
            min_length=1,
            max_length=MOST_LEVELS,
            title="positive multiples of an element's bytes: FIRST:LAST:FACTOR, or a list",
        ),
        BeforeValidator(_sizes),
        ASCENDING,
    ] = tuple(parse_sizes("1KiB:16MiB:4"))
    """Bytes per rank"""
    largest: Annotated[
        Mapping[str, Annotated[int, whole(0)]],
        Field(title='a table: largest = { pickle = "4MiB" }'),
        BeforeValidator(_largest),
    ] = field(default_factory=dict)
    """Per transport: bytes per rank above which it is not measured"""
    dtype: Annotated[Name, among(*DTYPES)] = "float32"
    """Type of the elements: `float32`, ..."""
    forms: Annotated[Names, among(*FORMS)] = (PLAIN,)
    """Forms of each call: `plain`, `persistent`, `nonblocking`, `in-place`; none stored: `plain`"""
    thresholds: Flag = False
    """Whether those of transport direct are measured, on both sides of their values"""
    trials: tuple[Trial, ...] = ()
    """How each threshold is measured on the machine, instead of all combinations"""

    @model_validator(mode="after")
    def _whole_elements(self, info: ValidationInfo) -> Self:
        itemsize = 1 if is_stored(info) else int(self.dtype[-2:]) // 8
        if any(size % itemsize for size in self.sizes):
            raise ValueError(
                f"sizes {list(self.sizes)} must be multiples of the {itemsize} bytes of one "
                f"{self.dtype}"
            )
        return self


@dataclass(frozen=True, config=TABLE)
class Launches:
    """What varies between launches."""

    environments: Annotated[
        tuple[Environment, ...],
        Field(min_length=1, max_length=MOST_LEVELS, title="a list of names"),
        AfterValidator(lambda names: tuple(dict.fromkeys(names))),
    ] = (BARE_HOST,)
    """Where launches run: `host`, `userland`, `docker`, ..., `vm:MACHINE`"""
    profiles: Annotated[Names, among(*PROFILES)] = ("tuned",)
    """What containers may do: `default`, `userns` (Podman of root alone), `tuned`, `privileged`"""
    layouts: Annotated[Names, among(*LAYOUTS)] = ("one",)
    """Containers per launch: `one`, `per-rank`, `isolated`"""
    mpis: Annotated[Names, among(*MPIS)] = ("openmpi",)
    """`openmpi`, `mpich`, `impi`"""
    external: Annotated[AnyNames, among(*EXTERNAL)] = ()
    """Programs that take part as a reference: `IMB`, in C; `threads`, `multiprocessing`: Python
    without an MPI"""
    hbw_policies: Annotated[AnyNames, among(*HBW_POLICIES)] = ()
    """Values of Intel MPI's I_MPI_HBW_POLICY that are an arm on the host each, where the machine
    has HBM: `hbw_bind`, `hbw_preferred`, `hbw_interleave`"""
    ranks: Annotated[
        tuple[Annotated[int, whole(1, 2**20)], ...],
        Field(min_length=1, max_length=MOST_LEVELS, title="a list of whole numbers from 1 up"),
        ASCENDING,
    ] = (2,)
    """MPI processes per launch"""
    bindings: Annotated[Names, among(*BINDINGS)] = ("packed",)
    """`packed`: ranks next to each other; `spread`: far apart"""
    blocks: Annotated[int, whole(1, MOST_BLOCKS)] = 10
    """Paired repetitions"""
    aa_pair: Flag = True
    """Whether the host takes part twice, for the noise floor"""
    arms: Annotated[Name, among(*ARMS)] = ARMS[0]
    """What the arms of a block are: `environments`, or in a bench `mpis`"""
    tuned: Annotated[AnyNames, among(*MPIS)] = ()
    """Of a bench: MPIs that are an arm in each of their settings"""
    nodes: Count = 1
    """Nodes of the allocation that the ranks are dealt out to; 1 without one"""
    launcher: Annotated[Name, among(*LAUNCHERS)] = LAUNCHERS[0]
    """What starts ranks in an allocation: `srun` or `mpiexec`"""

    @model_validator(mode="after")
    def _can_run(self, info: ValidationInfo) -> Self:
        if is_stored(info):
            return self
        names = ", ".join(map(str, self.environments))
        if refusal := without_user_namespace(
            self.profiles, {environment.runtime for environment in self.environments}
        ):
            raise ValueError(refusal)
        if any(environment.is_emulated for environment in self.environments):
            self._check_emulated(names)
        elif any(environment.on_cluster for environment in self.environments):
            self._check_on_cluster(names)
        elif any(environment.on_hosts for environment in self.environments):
            self._check_on_hosts(names)
        elif self.nodes > 1:
            raise ValueError(
                f"{self.nodes} nodes were asked for, and {names} has one: ask for --env slurm"
            )
        needed = {"host"} | ({"impi"} if "IMB" in self.external else set())
        if self.external and not needed <= {*map(str, self.environments), *self.mpis}:
            needs = " with impi" if "impi" in needed else ""
            raise ValueError(
                f"{', '.join(self.external)} in [launches] runs on the host{needs}, and the "
                f"experiment has {names} with {', '.join(self.mpis)}: "
                f"add {' and '.join(sorted(needed))}"
            )
        return self

    def _uneven(self, places: int) -> str:
        """The rank counts that places cannot share evenly."""
        return ", ".join(str(ranks) for ranks in self.ranks if ranks % places)

    def _check_on_cluster(self, names: str) -> None:
        """Refuse what an allocation cannot run, or what nothing could be compared with."""
        here = [str(environment) for environment in self.environments if not environment.on_cluster]
        if here:
            raise ValueError(
                f"an allocation has other nodes than this machine, and the campaign has {names}: "
                f"leave out {', '.join(here)}"
            )
        if uneven := self._uneven(self.nodes):
            raise ValueError(
                f"each of {self.nodes} nodes has as many ranks, and the campaign asks for {uneven} "
                f"ranks: ask for multiples of {self.nodes} with --ranks"
            )

    def _check_on_hosts(self, names: str) -> None:
        """Refuse what one set of emulated hosts cannot run."""
        sets = {(environment.hosts, environment.rate) for environment in self.environments}
        if len(sets) > 1:
            raise ValueError(
                f"a campaign on emulated hosts has one set of them, and {names} were asked for: "
                "measure each in a campaign of its own"
            )
        ((hosts, _),) = sets
        if self.nodes > 1:
            raise ValueError(f"{names} says how many hosts there are: drop --nodes {self.nodes}")
        if (most := max(self.ranks)) < hosts:
            raise ValueError(
                f"{most} ranks leave some of {hosts} hosts empty in every launch: ask for {hosts} "
                "or more with --ranks"
            )
        contained = [str(environment) for environment in self.environments if environment.container]
        if contained and (uneven := self._uneven(hosts)):
            raise ValueError(
                f"each of {hosts} hosts has as many ranks in a container, and the campaign asks "
                f"for {uneven} ranks: ask for multiples of {hosts} with --ranks, or leave out "
                f"{', '.join(contained)}"
            )

    def _check_emulated(self, names: str) -> None:
        """Refuse what no guest can run, or what nothing could be compared with."""
        real = [str(environment) for environment in self.environments if not environment.machine]
        if real:
            raise ValueError(
                f"an emulated machine's times mean nothing beside real ones, and the campaign has "
                f"{names}: leave out {', '.join(real)}"
            )
        machines = tuple(dict.fromkeys(environment.machine for environment in self.environments))
        for what, several, given in (
            ("emulated machine", "machines", machines),
            ("MPI, the one that its disk holds", "MPIs", self.mpis),
        ):
            if len(given) > 1:
                raise ValueError(
                    f"a campaign in a guest has one {what}, and {', '.join(given)} were asked for: "
                    f"measure these {several} in campaigns of their own"
                )
        if self.external:
            raise ValueError(
                f"{', '.join(self.external)} in [launches] runs on the host, and the campaign has "
                f"{names}: leave out {', '.join(self.external)}"
            )
        docker = [environment for environment in self.environments if environment.kind == VM_DOCKER]
        layouts = [name for name in self.layouts if name != LAYOUTS[0]]
        if docker and layouts:
            raise ValueError(
                f"{docker[0]} has the layout one alone, as Docker there has no bridge to join "
                f"several containers; found {', '.join(layouts)}: pass --layouts one"
            )


@dataclass(frozen=True, config=TABLE)
class Timing:
    """How one cell is timed."""

    cadence: Annotated[Name, among(*CADENCES)] = Measurement.cadence
    """`isolated`: ranks are synchronised before each operation; `streaming`: they are not"""
    cache: Annotated[Name, among(*CACHES)] = Measurement.cache
    """`warm`: the same buffers again and again; `rotating`: over twice the last-level cache"""
    time_cap: Annotated[float, Field(strict=True, gt=0, title="seconds, more than 0")] = (
        Measurement.time_cap
    )
    """Seconds that the turns of a cell take at most, with operations in them that do not count;
    warming up before is not counted"""
    min_iterations: Count = Measurement.min_iterations
    """Timed iterations per cell, at least, as far as 25 turns hold them"""
    max_iterations: Count = Measurement.max_iterations
    """Timed iterations per cell, at most"""
    emulate_hbw: Flag = Measurement.emulate_hbw
    """Whether ordinary memory plays the part of HBM where there is none"""

    @model_validator(mode="after")
    def _least_first(self, info: ValidationInfo) -> Self:
        if self.min_iterations > self.max_iterations and not is_stored(info):
            raise ValueError(
                f"min_iterations {self.min_iterations} is more than max_iterations "
                f"{self.max_iterations}"
            )
        return self


@dataclass(frozen=True, config=TABLE)
class Experiment:
    """The experiment."""

    name: FileName
    """Its name"""
    title: Line
    """Its title"""
    question: Line
    """What it asks"""
    factors: Factors = field(default_factory=Factors)
    launches: Launches = field(default_factory=Launches)
    measurement: Timing = field(default_factory=Timing)

    @model_validator(mode="after")
    def _can_be_measured(self, info: ValidationInfo) -> Self:
        if is_stored(info):
            return self
        known = CONTENDERS if self.launches.arms == MPIS_ARE_ARMS else IN_ENVIRONMENTS
        for transport in self.factors.transports:
            if transport not in known:
                raise ValueError(f"{unknown('transports', transport, known)} [factors]")
        tuning, ranks = self.factors.thresholds, self.launches.ranks
        if (tuning or self.launches.arms == MPIS_ARE_ARMS) and min(ranks) < 2:
            raise ValueError(f"ranks {list(ranks)}: a collective needs 2 ranks or more")
        if tuning and self.launches.environments != (BARE_HOST,):
            raise ValueError("thresholds are measured on the host alone: leave out --env")
        if tuning and len(ranks) > 1:
            raise ValueError(
                f"ranks {list(ranks)}: --tune takes one number of ranks; tune for each by itself"
            )
        if asked := [name for name in self.factors.operations if name in WORKLOADS]:
            self._check_workloads(asked)
        return self

    def _check_workloads(self, asked: list[str]) -> None:
        """Refuse what cannot be measured together with workloads."""
        factors, launches = self.factors, self.launches
        family = WORKLOADS[asked[0]].family
        relatives = tuple(name for name, workload in WORKLOADS.items() if workload.family == family)
        contenders = dict.fromkeys(
            name for workload in asked for name in WORKLOADS[workload].contenders
        )
        for key, given, possible in (
            ("operations", factors.operations, relatives),
            ("transports", factors.transports, tuple(contenders)),
            ("kinds", factors.kinds, ("regular",)),
            ("buffers", factors.buffers, (ARENA,)),
            ("forms", factors.forms, (PLAIN,)),
            ("dtype", (factors.dtype,), ("float32",)),
            ("external", launches.external, ()),
            ("arms", (launches.arms,), ARMS[:1]),
            ("cache", (self.measurement.cache,), ("warm",)),
        ):
            if other := [choice for choice in given if choice not in possible]:
                raise ValueError(
                    f"{key} {', '.join(other)} cannot be measured together with "
                    f"{', '.join(asked)}: ask for {', '.join(possible) or 'none'}, or measure them "
                    "in another campaign"
                )
        for name in asked:
            grain = WORKLOADS[name].grain
            if any(nbytes(name, size) % grain for size in factors.sizes):
                raise ValueError(
                    f"sizes {list(factors.sizes)} must be multiples of {grain} bytes, which {name} "
                    "moves at least"
                )

    @staticmethod
    def from_dict(values: object, source: str, stored: bool = False) -> "Experiment":
        """The validated experiment.

        Args:
            values: of a file in catalogue/, or of to_dict().
            source: the file, as messages name it.
            stored: take names that this machine does not know, and leave out fields that this
                version does not know: another machine and version measured it.

        Raises:
            SpecError: naming source, key, and the nearest name that would be valid.
        """
        return read(Experiment, values, source, stored)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as campaign.json holds them."""
        values = asdict(self)
        values["launches"]["environments"] = tuple(map(str, self.launches.environments))
        return values

    @property
    def uses_torch(self) -> bool:
        """Whether its environments need torch; a bench takes it where it is."""
        needed = not NEEDING_TORCH.isdisjoint(self.factors.transports)
        return needed and self.launches.arms != MPIS_ARE_ARMS

    @property
    def on_cluster(self) -> bool:
        """Whether all launches run in an allocation."""
        return self.launches.environments[0].on_cluster

    @property
    def machine(self) -> str:
        """The emulated machine that all launches run in, "" where they run in none."""
        return self.launches.environments[0].machine


def schema() -> dict[str, Any]:
    """The JSON Schema of what campaign.json keeps of an experiment, for docs/schemas."""
    made = TypeAdapter(Experiment).json_schema()
    return _plain(made, made["$defs"])


def _plain(made: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with its tables in their places, and without what only forms need."""
    if "$ref" in made:
        made = tables[made["$ref"].rpartition("/")[2]]
    kept = {key: made[key] for key in made if key not in ("title", "default", "$defs", "required")}
    if "description" in kept:
        text = " ".join(kept["description"].split())
        kept["description"] = text if text.endswith("...") else text.removesuffix(".")
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _plain(kept[key], tables)
    if fields := kept.get("properties"):
        kept["properties"] = {name: _plain(subschema, tables) for name, subschema in fields.items()}
        kept["required"] = sorted(fields.keys() - ADDED)
    return kept
