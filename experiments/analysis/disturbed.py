"""Launches during which their CPUs did other work, which machine/cgroup.py counts. Pure."""

from collections.abc import Iterator, Mapping

import pandas as pd

from experiments.results.result import Result

STOLEN = "a hypervisor kept CPUs of ranks from running (steal time)"
OTHERS = "other processes ran on CPUs of ranks"
STOLEN_SHARE = 0.01  # of a rank's CPU that a hypervisor may take without a caution
OTHERS_SHARE = 0.05  # of a rank's CPU that work of others may take

Launches = Mapping[str, Result]
"""By the launch's name."""


def sentences(launches: Launches) -> Iterator[str]:
    """What took a larger share of the CPUs of some ranks than is allowed for."""
    largest_shares = shares(launches)
    for column, allowed, what in (
        ("stolen", STOLEN_SHARE, STOLEN),
        ("others", OTHERS_SHARE, OTHERS),
    ):
        known = largest_shares[column].dropna()
        above = known[known > allowed]
        if above.empty:
            continue
        worst = str(above.idxmax())
        yield (
            f"{what} for more than {100 * allowed:.0f} % of the time in {len(above)} of "
            f"{len(known)} launches; at most {100 * above[worst]:.0f} %, in {worst}"
            f"{_load(launches[worst])}: measure on a quieter machine, or again"
        )


def shares(launches: Launches) -> pd.DataFrame:
    """By launch, the largest shares of a rank's CPU: `stolen` by a hypervisor, used by `others`.

    Launches that took turns share their CPUs: the time of all their ranks is left out of `others`.
    NaN where the kernel does not count; older launches have no row.
    """
    numbers = ["seconds", "busy", "own", "stolen"]
    counted = pd.DataFrame(
        [
            {"launch": name, "company": " ".join(launch.company) or name, "cpu": rank.cpu}
            | vars(rank.disturbance)
            for name, launch in launches.items()
            for rank in launch.ranks
            if rank.disturbance
        ],
        columns=["launch", "company", "cpu", *numbers],
    ).astype(dict.fromkeys(numbers, float))
    own = counted.groupby(["company", "cpu"])["own"].transform("sum")
    spent = counted["seconds"].where(counted["seconds"] > 0)
    counted["stolen"] /= spent
    counted["others"] = (counted["busy"] - own) / spent
    return counted.groupby("launch", sort=False)[["stolen", "others"]].max()


def _load(launch: Result) -> str:
    loads = next(rank.disturbance.load for rank in launch.ranks if rank.disturbance)
    if len(loads) != 2 or None in loads:
        return ""
    return " (load average {:.1f} before, {:.1f} after)".format(*loads)
