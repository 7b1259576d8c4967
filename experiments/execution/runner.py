"""Runs a campaign, block by block: the arms of a block take turns, where they can.

Everything it starts is given to it as commands; what a launch found is taken in by store.py.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import docker

from experiments.console.progress_bar import Display
from experiments.environments.process import Command
from experiments.execution import launching, memory_fit, together
from experiments.execution.attempts import Attempts, Loss
from experiments.execution.launching import Environments
from experiments.jobs.attend import STALLED, LaunchFailed, attended, disk_full, log_of
from experiments.jobs.containers import ContainerRefused
from experiments.model.arms import ALONE, ALONE_FROM
from experiments.model.environment import machine_of
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Block, Launch
from experiments.results import store
from experiments.schedule.blocks import alone, varied
from experiments.schedule.parties import parties

STALLED_THERE = 600.0  # in an emulated machine, where a rank alone may take 10 s to start
GONE_PATIENCE = 2.0  # seconds in which a machine whose agent has fallen silent is seen to be gone
POLL = 0.1  # seconds


class MachineGone(ExperimentsError):
    """An emulated machine ended while launches ran in it."""


Gone = Mapping[str, Callable[[], str]]
"""By environment, what tells why its emulated machine is gone: "" while it runs."""


def run(
    folder: Path,
    blocks: Sequence[Block],
    environments: Environments,
    clients: Mapping[str, docker.DockerClient],
    owner: tuple[int, int],
    gone: Gone | None = None,
) -> list[str]:
    """Run every launch that is not finished yet.

    A container's launch that fails is a finding: it is kept as such and the campaign goes on, but
    for the other launches of an arm that failed FAILURES times.

    Args:
        folder: a results folder that results.create has begun.
        clients: of the engines for those that answer with a container, by environment.
        owner: uid and gid that container ranks write as.

    Returns:
        What failed, one message each; `--resume` tries it again.

    Raises:
        LaunchFailed: outside containers; EngineLost, MachineGone: finished launches stay,
            `--resume` completes.
        ResultsError: when a launch's result does not fit those before it.
    """
    store.withdraw_torn(folder)
    finished = store.finished(folder)
    launches = [launch for block in blocks for launch in block.launches]
    places, attempts = varied(launches), Attempts()

    with Display(len(launches), len(finished & {each.name for each in launches})) as display:
        for block in blocks:
            missing = [launch for launch in block.launches if launch.name not in finished]
            waiting = [*filter(None, map(attempts.prepare, missing))]
            took_turns = False
            for party in parties(block, waiting, memory_fit.fits):
                took_turns |= len(party) > 1
                name = party[0].name if len(party) == 1 else f"block {block.number} in turns"
                asked = [launch for launch in party if launch in waiting]
                display.begin(name + places[asked[0].name], len(asked))
                while party:
                    if party[0].spares_peers or len(party) > 1:
                        losses = together.run(
                            *(folder, party, environments, clients, owner),
                            *(display.within, attempts.refuse),
                        )
                    else:
                        there = _presence(gone or {}, party[0])
                        watching = (display, there, attempts.refuse)
                        losses = _alone(folder, party[0], environments, clients, owner, *watching)
                    party = [
                        again
                        for launch in party
                        if launch.name in losses
                        and (again := _lost(folder, launch, losses[launch.name], attempts, display))
                    ]
                display.end()
            extra = alone(block)
            if extra and took_turns and len(blocks) >= ALONE_FROM and not _had_alone(folder):
                display.begin(extra.name, 0)
                together.run(
                    *(folder, [extra], environments, clients, owner),
                    *(display.within, attempts.refuse),
                )
                display.end()
    return attempts.failures


def _lost(
    folder: Path, launch: Launch, loss: Loss, attempts: Attempts, display: Display
) -> Launch | None:
    """Keep why a launch was lost; what is to be measured of it all the same, at once."""
    reason = loss.why if launch.spares_peers else loss.text
    store.fail(folder, launch.name, launch.to_dict(), reason)
    said = attempts.failed(launch, loss)
    if not launch.spares_peers:
        return None
    if disk_full(folder):
        raise LaunchFailed(loss.text, loss.why)
    display.say(said)
    log = log_of(folder, launch.name)
    log.replace(log.with_name(f"{launch.name}.failed-{len(launch.without) + 1}.log"))
    return attempts.prepare(launch)


def _had_alone(folder: Path) -> bool:
    return any(name.endswith(f"-{ALONE}") for name in store.finished(folder))


def _presence(gone: Gone, launch: Launch) -> Callable[[], None]:
    """What raises MachineGone once the emulated machine of a launch is gone."""
    ask = gone.get(launch.environment, lambda: "")

    def look() -> None:
        if why := ask():
            raise MachineGone(
                f"the guest of {machine_of(launch.environment)} ended while {launch.name} ran in "
                f"it: {why}\nFinished launches are kept: --resume boots it again and goes on"
            )

    return look


def _await_end(look: Callable[[], None]) -> None:
    """A launch may end before the machine that it fails with is seen to be gone."""
    deadline = time.monotonic() + GONE_PATIENCE
    while time.monotonic() < deadline:
        look()
        time.sleep(POLL)


def _alone(
    folder: Path,
    launch: Launch,
    environments: Environments,
    clients: Mapping[str, docker.DockerClient],
    owner: tuple[int, int],
    display: Display,
    there: Callable[[], None],
    refuse: together.Refuse,
) -> dict[str, Loss]:
    """Run one launch; how it was lost, by its name, where that is a finding."""
    commands: list[Command] = []

    def prepare(place: Path) -> Command:
        commands.append(launching.prepare(place, launch, environments(launch), owner))
        return commands[0]

    patience = STALLED_THERE if machine_of(launch.environment) else STALLED
    watching = (display.within, launching.RESUME, patience, there)
    try:
        client = clients.get(launch.environment)
        with attended(folder, launch.name, prepare, client, *watching) as place:
            launching.look_at(folder, launch, place, commands[0])
    except (LaunchFailed, ContainerRefused) as failure:
        if machine_of(launch.environment):
            _await_end(there)
        loss = Loss(str(failure), getattr(failure, "why", "refused by the engine"))
        refuse(launch, loss)
        return {launch.name: loss}
    return {}
