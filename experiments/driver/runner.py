"""Runs a campaign, block by block: the arms of a block take turns, where they can.

A LaunchContext brings the commands that it starts; store.py takes in what a launch found.
"""

import time
from collections.abc import Sequence

from experiments.console import Display
from experiments.driver import memory_fit, together
from experiments.driver.attempts import Attempts
from experiments.driver.launching import LaunchContext, log_of, run_alone
from experiments.jobs.failures import LaunchFailed, disk_full
from experiments.model.arms import ALONE_FROM
from experiments.model.launch import Block, Launch
from experiments.results import store
from experiments.schedule.blocks import Fits, alone, parties, varied

GONE_PATIENCE = 2.0  # seconds in which a machine that no longer answers is seen to be gone
POLL = 0.1  # seconds


class Runner:
    """Runs every launch of a schedule that is not finished yet.

    A container's launch that fails is a finding: it is kept as such and the campaign goes on,
    except for the other launches of an arm that failed FAILURES times.
    """

    def __init__(
        self, context: LaunchContext, blocks: Sequence[Block], fits: Fits = memory_fit.fits
    ) -> None:
        self._context, self._blocks, self._fits = context, blocks, fits
        self._folder = context.folder
        self._launches = [launch for block in blocks for launch in block.launches]
        self._levels = varied(self._launches)
        self._attempts = Attempts()

    def run(self) -> list[str]:
        """Run them all; what failed, one message each, which `--resume` tries again.

        Raises:
            LaunchFailed: outside containers.
            ResultsError: when a launch's result does not fit those before it.
            ExperimentsError: an engine or a machine is gone. Finished launches stay, `--resume`
                completes.
        """
        store.withdraw_torn(self._folder)
        finished = store.finished(self._folder)
        done = len(finished & {launch.name for launch in self._launches})
        with Display(len(self._launches), done) as display:
            for block in self._blocks:
                missing = [launch for launch in block.launches if launch.name not in finished]
                took_turns = self._run_block(block, missing, display)
                if took_turns and len(self._blocks) >= ALONE_FROM:
                    self._run_reference_alone(block, display)
        return self._attempts.failures

    def _run_block(self, block: Block, missing: Sequence[Launch], display: Display) -> bool:
        """Run what a block lacks; whether launches took turns."""
        waiting = [*filter(None, map(self._attempts.prepare, missing))]
        took_turns = False
        for party in parties(block, waiting, self._fits):
            took_turns |= len(party) > 1
            name = party[0].name if len(party) == 1 else f"block {block.number} in turns"
            asked = [launch for launch in party if launch in waiting]
            display.begin(name + self._levels[asked[0].name], len(asked))
            self._run_party(party, display)
            display.end()
        return took_turns

    def _run_party(self, party: list[Launch], display: Display) -> None:
        """Run launches that take turns, again without what made one of them fail."""
        while party:
            if party[0].spares_peers or len(party) > 1:
                losses = self._run_together(party, display)
            else:
                losses = self._run_one(party[0], display)
            party = [
                again
                for launch in party
                if launch.name in losses
                and (again := self._lost(launch, losses[launch.name], display))
            ]

    def _run_together(self, party: Sequence[Launch], display: Display) -> dict[str, LaunchFailed]:
        return together.run(self._context, party, display.within, self._attempts.refuse)

    def _run_reference_alone(self, block: Block, display: Display) -> None:
        """Run the reference arm without company, once in a campaign."""
        extra = alone(block)
        every = {launch.name for launch in map(alone, self._blocks) if launch}
        if extra and not every & store.finished(self._folder):
            display.begin(extra.name, 0)
            self._run_together([extra], display)
            display.end()

    def _lost(self, launch: Launch, loss: LaunchFailed, display: Display) -> Launch | None:
        """Keep why a launch was lost; what is to be measured of it all the same, at once."""
        reason = loss.why if launch.spares_peers else str(loss)
        store.fail(self._folder, launch.name, launch.to_dict(), reason)
        consequence = self._attempts.failed(launch, loss)
        if not launch.spares_peers:
            return None
        if disk_full(self._folder):
            raise loss
        display.say(consequence)
        log = log_of(self._folder, launch.name)
        log.replace(log.with_name(f"{launch.name}.failed-{len(launch.without) + 1}.log"))
        return self._attempts.prepare(launch)

    def _run_one(self, launch: Launch, display: Display) -> dict[str, LaunchFailed]:
        """Run one launch without company; how it was lost, by its name, where that is a finding."""
        try:
            run_alone(self._context, launch, display.within)
        except LaunchFailed as loss:
            deadline = time.monotonic() + GONE_PATIENCE  # it may end before its machine does
            while launch.environment.is_emulated and time.monotonic() < deadline:
                self._context.check_presence(launch, 0.0)
                time.sleep(POLL)
            self._attempts.refuse(launch, loss)
            return {launch.name: loss}
        return {}
