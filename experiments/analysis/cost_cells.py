"""What cost models are fitted to: times on the host, and the machine that they are of.

They come from a results folder, or from the medians that a bench keeps (docs/data/cores.json.xz).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.selection import in_order, rows, usual
from experiments.model.arms import TWIN
from experiments.model.contender_names import PLAIN
from experiments.model.environment import BARE_HOST
from experiments.model.errors import ExperimentsError
from experiments.model.lower_bound import COPY, traffic
from experiments.model.workloads import EXCHANGE, LAYERWISE, MPI_LAYERWISE
from hbmcomm import costmodel

DIRECT, MPI = "direct", "mpi"
SPEED = 1e10  # bytes per second of a core where no copies were measured; models are relative to it
CACHE = 32 * 2.0**20  # bytes of the last-level cache where results do not have it
LATENCY = 130e-9
"""Seconds from core to core, of two cores of a virtual machine (docs/costs.md, "Checked"). Models
are relative to it: it matters where another machine takes this one's place."""

KEYS = ["mpi", "transport", "operation", "ranks", "bytes"]
"""What names a time that a model is fitted to."""


class CannotModel(ExperimentsError):
    """There is nothing that a cost model could be fitted to."""


@dataclass(frozen=True)
class Measured:
    """Times, and the machine that they are of.

    Attributes:
        source: as messages name it.
        times: one row per KEYS with `seconds`, the median over launches, and `bound_s`. Plain calls
            in one kind of memory, of the operations that models know.
        machine: the cores that ranks had, its last-level cache, and the speeds of copies.
        algorithms: by transport, where it is known; models choose that of the others.
    """

    source: str
    times: pd.DataFrame
    machine: costmodel.Machine
    algorithms: Mapping[str, str] = field(default_factory=dict)

    @property
    def compared(self) -> str:
        """What the column of transports holds, as texts name it."""
        return "algorithm" if self.algorithms else "transport"


def of_campaign(campaign: Campaign) -> Measured:
    """What a results folder has. An exchange of gradients is an allreduce.

    Raises:
        CannotModel: no collective on the host is known to models.
    """
    host = str(BARE_HOST)
    frame = campaign.cells.replace(
        {
            "operation": {EXCHANGE: "allreduce"},
            "transport": {LAYERWISE: DIRECT, MPI_LAYERWISE: MPI},
        }
    )
    frame = usual(frame[(frame["environment"] == host) & (frame["arm"] != TWIN)])
    if not frame.empty:
        frame = frame[frame["kind"] == in_order(frame["kind"], ("regular",))[0]]
    copies = campaign.controls
    copies = copies[(copies["environment"] == host) & (copies["kind"] == "regular")]
    asked = [launch.launch.ranks for launch in campaign.launches]
    used = [len({rank.cpu for rank in launch.ranks}) for launch in campaign.launches]
    cores = max(used) or max(asked)  # older results have no places of ranks
    facts = campaign.launches[0].facts.machine
    return _measured(str(campaign.folder), frame, copies, cores, facts)


def of_bench(source: str, summary: Mapping[str, Any]) -> Measured:
    """What the JSON of `./inv bench --json` has. Its copies are found in its bounds.

    Raises:
        CannotModel: no collective is known to models.
    """
    frame = pd.DataFrame(summary["launches"])
    frame = frame[frame["contender"].isin((DIRECT, MPI))]
    frame = frame.rename(columns={"contender": "transport", "flavour": "mpi"})
    needed = [
        traffic(COPY, row.ranks) / (traffic(row.operation, row.ranks) or np.nan)
        for row in rows(frame)
    ]
    copies = frame.assign(median_s=frame["bound_s"] * needed)
    facts = summary["machine"]
    return _measured(source, frame, copies, int(frame["ranks"].max()), facts)


def _measured(
    source: str,
    frame: pd.DataFrame,
    copies: pd.DataFrame,
    cores: int,
    facts: Mapping[str, Any],
) -> Measured:
    frame = frame[(frame["form"] == PLAIN) & frame["operation"].isin(costmodel.SHARED)]
    if frame.empty:
        raise CannotModel(
            f"{source} has no collective on the host that a cost model knows "
            f"({', '.join(costmodel.SHARED)}); measure some: ./inv run --experiment model"
        )
    grouped = frame.groupby(KEYS, as_index=False)[["median_s", "bound_s"]].median()
    times = grouped.rename(columns={"median_s": "seconds"})
    cache = str(facts.get("last_level_cache_bytes", ""))
    cache_bytes = float(cache) if re.fullmatch("[0-9]{1,15}", cache) else CACHE
    return Measured(source, times, _machine(copies, cores, cache_bytes))


def _machine(copies: pd.DataFrame, cores: int, cache_bytes: float) -> costmodel.Machine:
    """The machine by its copies: of messages within the caches, and of the longest."""
    touched = 2 * copies["ranks"] * copies["bytes"]
    speeds = copies.assign(touched=touched, speed=touched / copies["median_s"])
    longest = speeds[speeds["bytes"] == speeds["bytes"].max()]
    return costmodel.Machine(
        name="this machine",
        cores=cores,
        nodes=1,
        cache_bytes=cache_bytes,
        cache=_curve(speeds[speeds["touched"] <= cache_bytes], cores),
        memories={"regular": _curve(longest, cores)},
        latency=LATENCY,
    )


def _curve(copies: pd.DataFrame, cores: int) -> costmodel.Memory:
    """The best speed of each number of ranks, of medians over launches; SPEED without copies."""
    medians = copies.groupby(["ranks", "bytes"], as_index=False)[["speed"]].median()
    best = medians.groupby("ranks")["speed"].max().dropna()
    if best.empty:
        return costmodel.Memory((1, max(2, cores)), (SPEED, max(2, cores) * SPEED))
    return costmodel.Memory(tuple(map(int, best.index)), tuple(map(float, best)))
