"""A small launch over every operation."""

from dataclasses import replace

from experiments.model.environment import EnvironmentId
from experiments.model.launch import OPERATIONS, Cell, Launch, Measurement
from tests.launched import LAUNCH


def small_launch(
    environment: str, profile: str = "", kinds: tuple[str, ...] = ("regular", "hbw")
) -> Launch:
    """Every operation, briefly, in one container or none."""
    return replace(
        LAUNCH,
        arm="-".join(filter(None, (environment, profile, "one"))),
        environment=EnvironmentId.parse(environment),
        profile=profile,
        layout="one",
        measurement=Measurement(time_cap=0.01, min_iterations=6, max_iterations=20),
        cells=tuple(
            Cell(operation, transport, kind, "local", size)
            for kind in kinds
            for operation in OPERATIONS
            for transport, size in (("direct", 4), ("direct", 2**22), ("mpi", 100_000))
        ),
    )
