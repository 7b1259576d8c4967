"""All experiments at a glance: what each asks, compares and needs, and about how long it takes.

Measures nothing and asks nothing of this machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from experiments.catalogue import spec
from experiments.driver import forecast
from experiments.driver.forecast import Host
from experiments.model.environment import EnvironmentId
from experiments.model.experiment import Experiment, Launches
from experiments.model.launch import SPREAD
from experiments.model.quantities import NOTHING
from experiments.model.workloads import HOROVODS
from experiments.schedule.blocks import schedule

HEAD = ("experiment", "question", "arms", "cells", "launches", "time", "needs")


@dataclass(frozen=True)
class Overview:
    """One experiment.

    Attributes:
        arms: what is compared, with which MPIs where there are several, and how many ranks.
        cells: of a launch: combinations of operation, transport, kind, size ...; 0 where they
            depend on the machine.
        seconds: of the whole campaign, about the most.
    """

    name: str
    question: str
    arms: str
    cells: int
    launches: int
    seconds: float
    needs: str

    def row(self) -> tuple[str, ...]:
        """Its texts, in the order of HEAD."""
        known = (str(self.cells), forecast.duration(self.seconds))
        cells, time = known if self.cells else (NOTHING, NOTHING)
        counts = (cells, str(self.launches), time)
        return (self.name, self.question, self.arms, *counts, self.needs)


def every(host: Host) -> list[Overview]:
    """All experiments of the catalogue, by name, as they would run on such a machine."""
    return [overview(spec.load(name), host) for name in spec.names()]


def overview(experiment: Experiment, host: Host) -> Overview:
    """One experiment, as it would run on such a machine."""
    asked = experiment.launches
    once = replace(experiment, launches=replace(asked, blocks=1))
    launches = [launch for block in schedule(once, 0) for launch in block.launches]
    return Overview(
        experiment.name,
        experiment.question,
        "; ".join(_compared(asked)),
        0 if experiment.factors.thresholds else max(len(launch.cells) for launch in launches),
        len(launches) * asked.blocks,
        forecast.seconds(launches, host) * asked.blocks,
        ", ".join(_needs(experiment)) or NOTHING,
    )


def _compared(asked: Launches) -> Iterator[str]:
    def shown(environment: EnvironmentId) -> str:
        if not environment.has_engine:
            return str(environment)
        layouts = f"; {', '.join(asked.layouts)}" if asked.layouts[1:] else ""
        return f"{environment} ({', '.join(asked.profiles)}{layouts})"

    yield ", ".join([*map(shown, asked.environments), *asked.external])
    if asked.mpis[1:]:
        yield ", ".join(asked.mpis)
    yield f"{', '.join(map(str, asked.ranks))} ranks"


def _needs(experiment: Experiment) -> Iterator[str]:
    asked, factors = experiment.launches, experiment.factors
    if any(environment.is_container for environment in asked.environments):
        yield "Docker"
    if any(environment.on_hosts for environment in asked.environments):
        yield "root"
    if any("hbw" in kind for kind in factors.kinds) and not experiment.measurement.emulate_hbw:
        yield "HBM, or --emulate-hbw"
    if SPREAD in asked.bindings and not any(
        environment.on_hosts for environment in asked.environments
    ):
        yield "two NUMA nodes"
    if experiment.uses_torch:
        yield "torch"
    if set(HOROVODS) & set(factors.transports):
        yield "Horovod"
