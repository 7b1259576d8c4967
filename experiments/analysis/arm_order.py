"""The order of arms that readers see, and which of them are containers. Pure."""

from experiments.model import environment
from experiments.model.arms import named
from experiments.model.environment import ENVIRONMENTS, LAYOUTS, PROFILES

USERLAND = str(environment.USERLAND)


def in_container(arm: str) -> bool:
    """Whether an arm is a container, by its name."""
    return named(arm).in_container


def arm_key(arm: str) -> tuple[int, int, int, str]:
    """Sorts arms as figures show them: the host, then by layout, engine and profile."""
    found = named(arm)
    real = found.environment in ENVIRONMENTS
    return (
        LAYOUTS.index(found.layout) if found.layout else -1,
        ENVIRONMENTS.index(found.environment) if real else len(ENVIRONMENTS),
        PROFILES.index(found.profile) if found.profile else -1,
        arm,
    )
