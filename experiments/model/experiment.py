"""An experiment: what varies, what is repeated and how a cell is timed. Values only.

spec.py knows what a file in catalogue/ may hold.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import hbmcomm
from experiments.model.contender_names import CALLS, PLAIN
from experiments.model.environment import BARE_HOST, LAUNCHERS, EnvironmentId
from experiments.model.lower_bound import BARRIER
from experiments.model.workloads import NEEDING_TORCH

OPERATIONS = tuple(name for name in CALLS if name != BARRIER)
TRANSPORTS = ("direct", "hierarchical", "mpi", "pickle")
KINDS = hbmcomm.KINDS
DTYPES = ("float32", "float64", "int32", "int64")
LOCALITIES = ("local", "remote")
BUFFERS = ARENA, PRIVATE, NUMPY = "arena", "private", "numpy"
EXTERNAL = ("IMB", "threads", "multiprocessing")
"""A benchmark in C, and Python's own means without an MPI (experiments/baselines)."""
EXTERNAL_MPI = {"IMB": "impi"}
"""The MPI that an external program is linked with; such a program takes no turns."""
BINDINGS = PACKED, SPREAD = "packed", "spread"
MPIS_ARE_ARMS = "mpis"
ARMS = ("environments", MPIS_ARE_ARMS)
"""What the arms of a block are; MPIs on the host, each in its settings, meet all contenders."""
CADENCES = ("isolated", "streaming")
CACHES = ("warm", "rotating")


@dataclass(frozen=True)
class Factors:
    """What varies inside a launch; every combination is a cell.

    Attributes:
        buffers: "arena": memory that the ranks share, where a transport has it; "private": arrays
            of each rank's own, through memkind; "numpy": ordinary NumPy arrays.
        forms: of each call, as experiments.model.contender_names names them.
        largest: {transport: bytes}, for transports that are not measured at larger sizes.
    """

    operations: tuple[str, ...] = ("bcast", "gather", "allreduce")
    transports: tuple[str, ...] = ("direct", "mpi")
    kinds: tuple[str, ...] = ("regular",)
    localities: tuple[str, ...] = ("local",)
    buffers: tuple[str, ...] = (ARENA,)
    sizes: tuple[int, ...] = ()
    largest: Mapping[str, int] = field(default_factory=dict)
    dtype: str = "float32"
    forms: tuple[str, ...] = (PLAIN,)


@dataclass(frozen=True)
class Launches:
    """What varies between launches, and how often each is repeated.

    Attributes:
        profiles, layouts: of the containers of ENGINES; every combination is an arm.
        external: of EXTERNAL, programs that take part as a reference beside our harness.
        arms: what the arms of a block are, of ARMS.
        tuned: MPIs that are an arm in each of their settings.
        nodes: of the allocation that the ranks are dealt out to evenly; 1 where there is none.
        launcher: of LAUNCHERS, what starts ranks in an allocation.
    """

    environments: tuple[EnvironmentId, ...] = (BARE_HOST,)
    profiles: tuple[str, ...] = ("tuned",)
    layouts: tuple[str, ...] = ("one",)
    mpis: tuple[str, ...] = ("openmpi",)
    external: tuple[str, ...] = ()
    ranks: tuple[int, ...] = (2,)
    bindings: tuple[str, ...] = ("packed",)
    blocks: int = 10
    aa_pair: bool = True
    arms: str = ARMS[0]
    tuned: tuple[str, ...] = ()
    nodes: int = 1
    launcher: str = LAUNCHERS[0]


@dataclass(frozen=True)
class Measurement:
    """How one cell is timed.

    Attributes:
        time_cap: seconds that the turns of a cell take, with the operations before each that do
            not count, the barriers and the rewriting of buffers; warming up before the first turn
            is not counted.
        min_iterations: that are timed whatever the cap, in 25 turns at most.
    """

    cadence: str = "isolated"
    cache: str = "warm"
    time_cap: float = 0.5
    min_iterations: int = 10
    max_iterations: int = 1000
    emulate_hbw: bool = False


@dataclass(frozen=True)
class Experiment:
    """One question, and everything that is needed to measure its answer."""

    name: str
    title: str
    question: str
    factors: Factors = field(default_factory=Factors)
    launches: Launches = field(default_factory=Launches)
    measurement: Measurement = field(default_factory=Measurement)

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
