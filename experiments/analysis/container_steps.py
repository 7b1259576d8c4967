"""What each step from the host to a container costs: files, container, rules. Pure.

An arm of the chain is compared with the one before it, so each ratio is one step's share: the
host, the image's files without a container, the container with the fewest rules, one with more.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.model.arms import HOST, USERLAND, arm_key, named
from experiments.model.environment import PROFILES, EnvironmentId

FILES, CONTAINER, RULES = "other files", "container", "rules"
STEPS = (FILES, CONTAINER, RULES)

Family = tuple[EnvironmentId, str]
"""Environment and layout."""


@dataclass(frozen=True)
class Step:
    """One step: the time in the arm `above` over the time in the arm `below`."""

    step: str
    above: str
    below: str


def steps(arms: Iterable[str]) -> list[Step]:
    """The steps that these arms allow, in their order.

    Of each engine and layout the profile with the fewest rules shows what a container costs by
    itself (isolation alone, where that is `privileged`), and every other profile over it what its
    rules cost. Empty without the arm userland.
    """
    present = set(arms)
    if USERLAND not in present:
        return []
    chain = [Step(FILES, USERLAND, HOST)] if HOST in present else []
    contained = sorted((arm for arm in present if named(arm).profile), key=arm_key)
    families: dict[Family, list[str]] = {}
    for arm in contained:
        families.setdefault(family(arm), []).append(arm)
    freest = {
        key: max(same, key=lambda arm: PROFILES.index(named(arm).profile))
        for key, same in families.items()
    }
    chain += [Step(CONTAINER, arm, USERLAND) for arm in freest.values()]
    chain += [
        Step(RULES, arm, freest[key])
        for key, same in families.items()
        for arm in same
        if arm != freest[key]
    ]
    return chain


def family(arm: str) -> Family:
    """The family of a container arm: its arms differ in their profile alone."""
    parsed = named(arm)
    return parsed.environment, parsed.layout
