"""Arms by name: their levels, whether they are containers, and the order that readers see. Pure."""

from itertools import product

from experiments.model.environment import ENVIRONMENTS, LAYOUTS, PROFILES, VM_DOCKER

NAMES = tuple(map(str, ENVIRONMENTS))
HOST, USERLAND = NAMES[:2]
DOCKER_IN_MACHINE = f"{VM_DOCKER}-"
"""How the name of an arm begins that runs in Docker in an emulated machine."""


def arm_levels(arm: str) -> tuple[str, str, str]:
    """(environment, profile, layout) of an arm's name: docker-tuned-per-rank; "" for none."""
    for profile, layout in product(PROFILES, LAYOUTS):
        environment = arm.removesuffix(f"-{profile}-{layout}")
        if environment != arm:
            return environment, profile, layout
    return (arm, "", "one") if arm in NAMES and arm != HOST else (arm, "", "")


def in_container(arm: str) -> bool:
    """Whether an arm's name stands for a container."""
    return arm_levels(arm)[2] != ""


def arm_key(arm: str) -> tuple[int, int, int, str]:
    """Sorts arms as figures show them: the host, then by layout, engine and profile."""
    environment, profile, layout = arm_levels(arm)
    ranks = [
        order.index(level) if level in order else len(order) * bool(level) - 1
        for order, level in (
            (LAYOUTS, layout),
            (NAMES, environment),
            (PROFILES, profile),
        )
    ]
    return ranks[0], ranks[1], ranks[2], arm
