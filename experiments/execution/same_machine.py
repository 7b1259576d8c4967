"""Refuses to complete a campaign in another machine, or with other code, than it was begun with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.execution import inventory
from experiments.execution.backends import Backends
from experiments.execution.campaign_file import Campaign
from experiments.model.checkout import ROOT
from experiments.processes.digest import of_python
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


def refuse_other_code(campaign: Campaign, out: Path) -> None:
    """Refuse code that has changed since the first launch.

    An environment of the site has a hbmcomm of its own.

    Raises:
        ResultsError: which package has changed.
    """
    packages = ["experiments"] if campaign.python else ["experiments", "hbmcomm"]
    now = {each: of_python(ROOT / each) for each in packages}
    for name in sorted(store.finished(out))[:1]:
        begun = store.read_launch(out, name).get("environment", {}).get("hashes", {})
        if changed := [each for each in now if begun.get(each, now[each]) != now[each]]:
            raise store.ResultsError(
                f"{' and '.join(changed)} changed since {out} was begun, so that what is missing "
                "could not be compared; check out the code that it was begun with, or measure "
                "again into another --out"
            )


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
