"""Refuses to complete a campaign in another machine, or with other code, than it was begun with.

Each function raises ResultsError, which names what changed.
"""

from collections.abc import Mapping
from typing import Any

from experiments.driver import inventory
from experiments.driver.backends import Backends
from experiments.driver.campaign_file import Campaign
from experiments.machine import facts
from experiments.model.checkout import ROOT
from experiments.processes.files import of_python
from experiments.results import store


def refuse_other_machine(campaign: Campaign) -> None:
    """Refuse another machine, or an emulated one that is described in another way."""
    emulated, out = campaign.experiment.machine, campaign.request.out
    begun = campaign.stored["emulated"].get("description")
    if emulated and begun != inventory.described(emulated):
        raise store.ResultsError(
            f"the description of {emulated} has changed since {out} was begun, so that what is "
            "missing would be measured in another machine; measure again into another --out"
        )
    _refuse_changes(campaign, "this machine", campaign.stored.get("machine", {}), facts.identity())


def refuse_other_software(campaign: Campaign, software: Mapping[str, Any]) -> None:
    """Refuse an environment of the site that has changed.

    Args:
        software: what it holds now, as campaign.json has it; empty where there is none.
    """
    for key, now in software.items():
        _refuse_changes(campaign, campaign.request.python, campaign.stored.get(key, {}), now)


def refuse_other_code(campaign: Campaign) -> None:
    """Refuse code that has changed since the first launch.

    An environment of the site has a hbmcomm of its own.
    """
    out, python = campaign.request.out, campaign.request.python
    packages = ["experiments"] if python else ["experiments", "hbmcomm"]
    now = {package: of_python(ROOT / package) for package in packages}
    for name in sorted(store.finished(out))[:1]:
        begun = store.read_result(out, name).facts.hashes
        if changed := [
            package for package in now if begun.get(package, now[package]) != now[package]
        ]:
            raise store.ResultsError(
                f"{' and '.join(changed)} changed since {out} was begun, so that what is missing "
                "could not be compared; check out the code that it was begun with, or measure "
                "again into another --out"
            )


def refuse_other_guest(campaign: Campaign, backends: Backends) -> None:
    """Refuse another emulator, or a guest from another disk."""
    now = inventory.emulated(campaign.experiment, backends)
    _refuse_changes(campaign, campaign.experiment.machine, campaign.stored["emulated"], now)


def _refuse_changes(
    campaign: Campaign, what: str, begun: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    others = [
        f"{key}: {begun.get(key)} then, {now[key]} now" for key in now if begun.get(key) != now[key]
    ]
    if others:
        raise store.ResultsError(
            f"{what} is not as it was when {campaign.request.out} was begun ({'; '.join(others)}), "
            "so that what is missing would be measured in another machine; measure again into "
            "another --out"
        )
