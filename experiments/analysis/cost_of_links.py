"""Allreduces between hosts with a rank each: what models of their algorithms are fitted to.

To a cost model, links are a memory that caches nothing: each host adds the rate of its own link to
the speed of all. A parameter of 1 for bytes means that they take as long as the link's rate says.
"""

import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.cost_cells import KEYS, LATENCY, CannotModel, Measured
from experiments.analysis.cost_evaluation import Evaluation
from experiments.model.arms import TWIN
from experiments.model.environment import EnvironmentId
from experiments.model.lower_bound import least_wire_seconds
from experiments.model.quantities import parse_rate
from experiments.model.workloads import BETWEEN_HOSTS
from hbmcomm import costmodel

ALLREDUCE = "allreduce"
ALGORITHMS = {
    "ring": "ring",
    "recursive-doubling": "recursive-doubling",
    "rabenseifner": "rabenseifner",
    "tree": "binomial",
}
"""By the contender, the algorithm as cost models name it; `auto` may be any of them."""


def are_in(campaign: Campaign) -> bool:
    """Whether a campaign has allreduces between hosts."""
    return bool((campaign.cells["operation"] == BETWEEN_HOSTS).any())


def of_links(campaign: Campaign) -> Measured:
    """Allreduces between hosts by algorithm, which takes the column of transports.

    Raises:
        CannotModel: hosts have several ranks, or links a rate that is not known.
    """
    cells = campaign.cells
    cells = cells[(cells["operation"] == BETWEEN_HOSTS) & (cells["arm"] != TWIN)]
    cells = cells[cells["environment"] == cells["environment"].iloc[0]]
    bits = _rate(campaign, str(cells["environment"].iloc[0]))
    times = cells.replace({"operation": {BETWEEN_HOSTS: ALLREDUCE}})
    times = times.groupby(KEYS, as_index=False)[["median_s"]].median()
    times = times.rename(columns={"median_s": "seconds"})
    least = [
        least_wire_seconds(ALLREDUCE, [1] * hosts, nbytes, bits)
        for hosts, nbytes in zip(times["ranks"], times["bytes"], strict=True)
    ]
    used = {rank.cpu for launch in campaign.launches for rank in launch.ranks}
    return Measured(
        str(campaign.folder),
        pd.DataFrame(times.assign(bound_s=least)),
        machine(bits, int(times["ranks"].max()), max(1, len(used))),
        ALGORITHMS,
    )


def _rate(campaign: Campaign, environment: str) -> float:
    """Bits per second of each link."""
    mine = [launch for launch in campaign.launches if str(launch.launch.environment) == environment]
    hosts = [host for launch in mine for host in launch.facts.hosts]
    most = max((len(host.ranks) for host in hosts), default=0)
    if most > 1:
        raise CannotModel(
            f"{campaign.folder} has {most} ranks on a host, and models of links know hosts with "
            "one: measure with as many hosts as ranks, ./inv run --experiment between_hosts"
        )
    if rate := EnvironmentId.parse(environment).rate:
        return parse_rate(rate)
    raise CannotModel(
        f"{environment} has links of unknown rate; measure on emulated hosts: "
        "./inv run --experiment between_hosts"
    )


def machine(bits: float, hosts: int, cores: int) -> costmodel.Machine:
    """Hosts with links of a rate, as models see them.

    Args:
        bits: per second of each link.
        cores: all hosts have so many together; emulated ones share them.
    """
    rate = bits / 8
    hosts = max(2, hosts)
    together = costmodel.Memory((1, hosts), (rate, hosts * rate))
    return costmodel.Machine(
        name=f"hosts with links of {bits / 1e9:g} Gbit/s",
        cores=cores,
        nodes=1,
        cache_bytes=1.0,
        cache=together,
        memories={"regular": together},
        latency=LATENCY,
    )


def on_more_hosts(evaluation: Evaluation, most: int) -> pd.DataFrame:
    """Times of the named algorithms and the measured lengths on 2, 4, 8 ... and `most` hosts.

    Every host has CPUs of its own, unlike emulated ones, and a link of the measured rate. `auto`
    may take another algorithm there than where it was measured, so it is left out.

    Args:
        evaluation: as evaluated from of_links().

    Returns:
        `mpi`, `transport`, `bytes`, `hosts`, `seconds`.
    """
    bits = 8 * evaluation.machine.speed("regular", 1)
    there = machine(bits, most, cores=most)
    counts = [2**power for power in range(1, most.bit_length()) if 2**power < most] + [most]
    return pd.DataFrame(
        [
            {"mpi": mpi, "transport": transport, "bytes": nbytes, "hosts": hosts}
            | {"seconds": model.seconds(hosts, nbytes, there)}
            for (mpi, transport, _), model in evaluation.models.items()
            if transport in ALGORITHMS
            for nbytes in sorted(set(evaluation.times["bytes"]))
            for hosts in counts
        ]
    )
