"""What a file in catalogue/ may say, and the experiment that it makes.

Knows nothing of how a campaign is run. A typo is answered with the file, the key and the
nearest valid name.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.model import quantities
from experiments.model.contender_names import CALLS, CONTENDERS, FORMS
from experiments.model.environment import (
    ENVIRONMENTS,
    LAYOUTS,
    MPIS,
    PROFILES,
    emulated,
    in_docker_there,
    machine_of,
)
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
    TRANSPORTS,
    Experiment,
    Factors,
    Launches,
    Measurement,
)
from experiments.model.toml_validation import (
    Chooser,
    SpecError,
    known_keys,
    positive,
    table_of,
    unknown,
)

CATALOGUE = Path(__file__).parents[1] / "catalogue"


def from_dict(values: Mapping[str, Any], source: str) -> Experiment:
    """The validated experiment.

    Raises:
        SpecError: naming source, key, and the nearest name that would be valid.
    """
    known_keys(values, Experiment, source, "")
    for key in ("name", "title", "question"):
        if not isinstance(values.get(key), str) or not values[key]:
            raise SpecError(f"{source}: {key} is missing; give it as a line of text")
    launches = _launches(table_of(values, "launches", source), source)
    transports = CONTENDERS if launches.arms == MPIS_ARE_ARMS else TRANSPORTS
    return Experiment(
        name=values["name"],
        title=values["title"],
        question=values["question"],
        factors=_factors(table_of(values, "factors", source), source, transports),
        launches=launches,
        measurement=_measurement(table_of(values, "measurement", source), source),
    )


def names() -> list[str]:
    """The experiments of the catalogue."""
    return sorted(path.stem for path in CATALOGUE.glob("*.toml"))


def load(name: str) -> Experiment:
    """An experiment by its name in the catalogue, or by the path of a .toml file."""
    path = Path(name) if name.endswith(".toml") else CATALOGUE / f"{name}.toml"
    if not path.is_file():
        raise SpecError(unknown("experiment", name, names()))
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path.name} is not valid TOML: {error}; mend that line") from error
    return from_dict({"name": path.stem} | values, path.name)


def restrict(
    experiment: Experiment,
    *,
    environments: str | None = None,
    profiles: str | None = None,
    layouts: str | None = None,
    mpis: str | None = None,
    external: str | None = None,
    ranks: str | None = None,
    sizes: str | None = None,
    blocks: int | None = None,
    emulate_hbw: bool = False,
) -> Experiment:
    """The experiment with a user's flags in place of what its file says.

    Sizes that are asked for are measured with every transport. Without the host, programs that run
    there alone are left out, unless they are asked for.
    """
    values = experiment.to_dict()
    launches, factors = values["launches"], values["factors"]
    for key, text, every in (
        ("environments", environments, ENVIRONMENTS),
        ("profiles", profiles, PROFILES),
        ("layouts", layouts, LAYOUTS),
        ("mpis", mpis, MPIS),
        ("external", external, EXTERNAL),
    ):
        if text:
            launches[key] = list(every if text == "all" else text.split(","))
    if not external and "host" not in launches["environments"]:
        launches["external"] = []  # the file's own need the host, which was left out
    if ranks:
        launches["ranks"] = quantities.parse_ranks(ranks)
    if blocks is not None:
        launches["blocks"] = blocks
    if sizes:
        factors["sizes"], factors["largest"] = sizes, {}
    checked = from_dict(values, "the command line")
    wanted_emulation = emulate_hbw or experiment.measurement.emulate_hbw
    return replace(checked, measurement=replace(checked.measurement, emulate_hbw=wanted_emulation))


def check_ranks(experiment: Experiment, cores: int, machine: str = "this machine") -> None:
    """Refuse more ranks than a machine's cores can take turns on (RANKS_PER_CORE each)."""
    quantities.check_rank_counts(experiment.launches.ranks, cores, machine)


def _factors(table: Mapping[str, Any], source: str, known: tuple[str, ...]) -> Factors:
    known_keys(table, Factors, source, "factors")
    choose = Chooser(table, source, "factors")
    dtype = choose.one("dtype", DTYPES, "float32")
    sizes = table.get("sizes", "1KiB:16MiB:4")
    found = quantities.parse_sizes(sizes) if isinstance(sizes, str) else sizes
    itemsize = int(dtype[-2:]) // 8
    if not positive(found) or any(size % itemsize for size in found):
        raise SpecError(
            f"{source}: sizes {sizes!r} in [factors] must be positive multiples of the {itemsize} "
            f"bytes of one {dtype}: FIRST:LAST:FACTOR, or a list"
        )
    transports = choose.many("transports", known, Factors.transports)
    return Factors(
        operations=choose.many("operations", (*CALLS,), Factors.operations),
        transports=transports,
        kinds=choose.many("kinds", KINDS, Factors.kinds),
        localities=choose.many("localities", LOCALITIES, Factors.localities),
        buffers=choose.many("buffers", BUFFERS, Factors.buffers),
        sizes=tuple(sorted(set(found))),
        largest=_largest(table.get("largest", {}), transports, min(found), source),
        dtype=dtype,
        forms=choose.many("forms", FORMS, Factors.forms),
    )


def _largest(
    limits: object, transports: tuple[str, ...], smallest: int, source: str
) -> dict[str, int]:
    """The largest size of each transport that has one, in bytes; each keeps a size to measure."""
    if not isinstance(limits, Mapping):
        raise SpecError(
            f"{source}: largest {limits!r} in [factors] must be a table: "
            'largest = { pickle = "4MiB" }'
        )
    found = {}
    for transport, limit in limits.items():
        if transport not in transports:
            raise SpecError(f"{source}: {unknown('transport', transport, transports)} [largest]")
        found[transport] = quantities.parse_size(limit) if isinstance(limit, str) else limit
        if type(found[transport]) is not int or found[transport] < smallest:
            raise SpecError(
                f"{source}: largest {limit!r} leaves {transport} none of the sizes in [factors]; "
                "write bytes, or leave the transport out"
            )
    return found


def _launches(table: Mapping[str, Any], source: str) -> Launches:
    known_keys(table, Launches, source, "launches")
    choose = Chooser(table, source, "launches")
    ranks = table.get("ranks", Launches.ranks)
    if not positive(ranks):
        raise SpecError(f"{source}: ranks {ranks!r} must be a list of whole numbers from 1 up")
    _refuse_paths(table.get("environments", ()), source)
    every = (*ENVIRONMENTS, *emulated())
    found = Launches(
        environments=choose.many("environments", every, Launches.environments),
        profiles=choose.many("profiles", PROFILES, Launches.profiles),
        layouts=choose.many("layouts", LAYOUTS, Launches.layouts),
        mpis=choose.many("mpis", MPIS, Launches.mpis),
        external=choose.any("external", EXTERNAL, Launches.external),
        ranks=tuple(sorted(set(ranks))),
        bindings=choose.many("bindings", BINDINGS, Launches.bindings),
        blocks=choose.count("blocks", Launches.blocks),
        aa_pair=choose.flag("aa_pair", Launches.aa_pair),
        arms=choose.one("arms", ARMS, Launches.arms),
        tuned=choose.any("tuned", MPIS, Launches.tuned),
    )
    _check_emulated(found, source)
    wanted = {"host"} | ({"impi"} if "IMB" in found.external else set())
    if found.external and not wanted <= {*found.environments, *found.mpis}:
        needs = " with impi" if "impi" in wanted else ""
        raise SpecError(
            f"{source}: {', '.join(found.external)} in [launches] runs on the host{needs}, and "
            f"the experiment has {', '.join(found.environments)} with {', '.join(found.mpis)}: "
            f"add {' and '.join(sorted(wanted))}"
        )
    return found


def _refuse_paths(environments: object, source: str) -> None:
    """A machine of one's own is a file; a campaign names machines."""
    for name in environments if isinstance(environments, list | tuple) else ():
        if isinstance(name, str) and (path := machine_of(name)).endswith(".toml"):
            raise SpecError(
                f"{source}: a campaign takes machines by name, from "
                f"experiments/emulation/machines, and {name} is a path: put the file there and ask "
                f"for {name.partition(':')[0]}:{Path(path).stem}"
            )


def _check_emulated(asked: Launches, source: str) -> None:
    """Refuse what no guest can run, or what nothing could be compared with."""
    machines = list(dict.fromkeys(filter(None, map(machine_of, asked.environments))))
    if not machines:
        return
    real = [name for name in asked.environments if not machine_of(name)]
    if real:
        raise SpecError(
            f"{source}: an emulated machine's times mean nothing beside real ones, and the "
            f"campaign has {', '.join(asked.environments)}: leave out {', '.join(real)}"
        )
    for what, several, names in (
        ("emulated machine", "machines", machines),
        ("MPI, the one that its disk holds", "MPIs", asked.mpis),
    ):
        if len(names) > 1:
            raise SpecError(
                f"{source}: a campaign in a guest has one {what}, and {', '.join(names)} were "
                f"asked for: measure these {several} in campaigns of their own"
            )
    if asked.external:
        raise SpecError(
            f"{source}: {', '.join(asked.external)} in [launches] runs on the host, and the "
            f"campaign has {', '.join(asked.environments)}: leave out {', '.join(asked.external)}"
        )
    docker = [name for name in asked.environments if in_docker_there(name)]
    layouts = [name for name in asked.layouts if name != LAYOUTS[0]]
    if docker and layouts:
        raise SpecError(
            f"{source}: {docker[0]} has the layout one alone, as Docker there has no bridge to "
            f"join several containers; found {', '.join(layouts)}: pass --layouts one"
        )


def _measurement(table: Mapping[str, Any], source: str) -> Measurement:
    known_keys(table, Measurement, source, "measurement")
    choose = Chooser(table, source, "measurement")
    cap = table.get("time_cap", Measurement.time_cap)
    if type(cap) not in (int, float) or cap <= 0:
        raise SpecError(f"{source}: time_cap {cap!r} must be seconds, more than 0")
    least = choose.count("min_iterations", Measurement.min_iterations)
    most = choose.count("max_iterations", Measurement.max_iterations)
    if least > most:
        raise SpecError(f"{source}: min_iterations {least} is more than max_iterations {most}")
    return Measurement(
        cadence=choose.one("cadence", CADENCES, Measurement.cadence),
        cache=choose.one("cache", CACHES, Measurement.cache),
        time_cap=float(cap),
        min_iterations=least,
        max_iterations=most,
        emulate_hbw=choose.flag("emulate_hbw", Measurement.emulate_hbw),
    )
