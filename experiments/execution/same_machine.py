"""Refuses to complete a campaign in another machine than it was begun in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.execution import inventory
from experiments.execution.backends import Backends
from experiments.execution.campaign_file import Campaign
from experiments.programs.machine import facts
from experiments.results import store


def refuse_other_machine(campaign: Campaign, out: Path) -> None:
    """Refuse another machine, or an emulated one that is described in another way.

    Raises:
        ResultsError: what has changed.
    """
    emulated = campaign.experiment.machine
    begun = campaign.stored["emulated"].get("description")
    if emulated and begun != inventory.described(emulated):
        raise store.ResultsError(
            f"the description of {emulated} has changed since {out} was begun, so that what is "
            "missing would be measured in another machine; measure again into another --out"
        )
    _refuse_changes("this machine", campaign.stored.get("machine", {}), facts.identity(), out)


def refuse_other_software(campaign: Campaign, found: Mapping[str, Any], out: Path) -> None:
    """Refuse an environment of the site that has changed.

    Args:
        found: what it holds now, as campaign.json has it; empty where there is none.

    Raises:
        ResultsError: what has changed.
    """
    for key, now in found.items():
        _refuse_changes(campaign.python, campaign.stored.get(key, {}), now, out)


def refuse_other_guest(campaign: Campaign, found: Backends, out: Path) -> None:
    """Refuse another emulator, or a guest from another disk.

    Raises:
        ResultsError: what has changed.
    """
    now = inventory.emulated(campaign.experiment, found)
    _refuse_changes(campaign.experiment.machine, campaign.stored["emulated"], now, out)


def _refuse_changes(what: str, begun: Mapping[str, Any], now: Mapping[str, Any], out: Path) -> None:
    others = [
        f"{key}: {begun.get(key)} then, {now[key]} now" for key in now if begun.get(key) != now[key]
    ]
    if others:
        raise store.ResultsError(
            f"{what} is not as it was when {out} was begun ({'; '.join(others)}), so that what is "
            "missing would be measured in another machine; measure again into another --out"
        )
