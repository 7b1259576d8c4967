"""Launches during which their CPUs did other work: a sentence each. Pure.

programs/machine/disturbance.py counts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

STOLEN_SHARE = 0.01  # of a rank's CPU that a hypervisor may take without a caution
OTHERS_SHARE = 0.05  # of a rank's CPU that work of others may take

Launches = Mapping[str, Mapping[str, Any]]
"""Launch results by the launch's name."""


def sentences(launches: Launches) -> Iterator[str]:
    """What took a larger share of the CPUs of some ranks than is allowed for."""
    yield from _over(
        launches, stolen, STOLEN_SHARE, "a hypervisor kept CPUs of ranks from running (steal time)"
    )
    yield from _over(launches, others, OTHERS_SHARE, "other processes ran on CPUs of ranks")


def _over(
    launches: Launches,
    share: Callable[[Launches], dict[str, float]],
    allowed: float,
    what: str,
) -> Iterator[str]:
    shares = share(launches)
    above = {name: value for name, value in shares.items() if value > allowed}
    if above:
        worst = max(above, key=lambda name: above[name])
        yield (
            f"{what} for more than {100 * allowed:.0f} % of the time in {len(above)} of "
            f"{len(shares)} launches; at most {100 * above[worst]:.0f} %, in {worst}"
            f"{_load(launches[worst])}: measure on a quieter machine, or again"
        )


def stolen(launches: Launches) -> dict[str, float]:
    """By launch, the share of its time that the rank worst off lost to a hypervisor."""
    found: dict[str, float] = {}
    for name, launch in launches.items():
        for _, counted in _counted(launch):
            if counted["stolen"] is not None and counted["seconds"]:
                share = counted["stolen"] / counted["seconds"]
                found[name] = max(found.get(name, 0.0), share)
    return found


def others(launches: Launches) -> dict[str, float]:
    """By launch, the largest share of a CPU that neither its ranks nor their company used.

    Launches that took turns share their CPUs: the ranks of all of them count as its own.
    """
    own: dict[tuple[Any, int], float] = defaultdict(float)
    for name, launch in launches.items():
        for cpu, counted in _counted(launch):
            own[_company(name, launch), cpu] += counted["own"]
    found: dict[str, float] = {}
    for name, launch in launches.items():
        for cpu, counted in _counted(launch):
            if counted["busy"] is not None and counted["seconds"]:
                rest = counted["busy"] - own[_company(name, launch), cpu]
                found[name] = max(found.get(name, 0.0), rest / counted["seconds"])
    return found


def _company(name: str, launch: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(launch.get("company", ())) or (name,)


def _counted(launch: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The CPU of each rank, and what was counted there; of older launches nothing."""
    for rank in launch.get("ranks", []):
        if "disturbance" in rank:
            yield rank["cpu"], rank["disturbance"]


def _load(launch: Mapping[str, Any]) -> str:
    before, after = next(iter(_counted(launch)))[1]["load"]
    return "" if before is None else f" (load average {before:.1f} before, {after:.1f} after)"
