"""The launches of a block that are alive together, and take turns.

All have the same cells; the ranks of one sleep while another's are timed. turns.py says who
measures when, channel.py carries that to the ranks.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import docker

from experiments import launching, results
from experiments.attend import LaunchFailed, add_chosen, failed, log_of
from experiments.channel import Channel
from experiments.containers import ContainerRefused
from experiments.execute import running
from experiments.launching import RESUME, Environment, Environments
from experiments.schedule import Launch
from experiments.turns import Answer, Lost, Order, conduct

END_PATIENCE = 30.0  # seconds in which ranks that were asked to leave have written their result
POLL = 0.02


class Member:
    """A launch that is alive, from its start to the end of `ends`."""

    def __init__(
        self,
        folder: Path,
        launch: Launch,
        environment: Environment,
        client: "docker.DockerClient | None",
        owner: tuple[int, int],
        ends: contextlib.ExitStack,
    ) -> None:
        """Start it.

        Raises:
            ContainerRefused: the engine does not want it.
        """
        self.launch, self._folder, self._ends = launch, folder, ends
        self._log = log_of(folder, launch.name)
        self._place = ends.enter_context(results.incoming(folder, launch.name))
        self._channel = ends.enter_context(Channel(self._place, launch.ranks, self._check))
        self._command = launching.prepare(self._place, launch, environment, owner)
        self._poll = ends.enter_context(running(self._command, self._log, client))

    def await_start(self) -> None:
        """Until its ranks wait for orders; Lost where they do not come that far."""
        with self._ended_where_lost():
            self._channel.open()

    def ask(self, order: Order) -> Answer:
        """Have its ranks carry out an order; Lost where they do not."""
        with self._ended_where_lost():
            return self._channel.ask(order)

    def await_end(self) -> None:
        """Its ranks were asked to leave: until they have; Lost where they do not end well."""
        deadline = time.monotonic() + END_PATIENCE
        with self._ended_where_lost():
            while (code := self._poll()) is None:
                if time.monotonic() > deadline:
                    raise Lost(f"did not end within {END_PATIENCE:.0f} s")
                time.sleep(POLL)
            if code:
                raise failed(self.launch.name, code, self._log, RESUME)

    def take_in(self, company: Sequence[str]) -> None:
        """Keep what its ranks wrote.

        Args:
            company: the names of all launches that took turns with it to the end.

        Raises:
            ResultsError: they wrote nothing, something torn, or hold other code than others.
        """
        add_chosen(self._place, self._log)
        results.add(self._place, {"company": list(company)})
        launching.look_at(self._folder, self.launch, self._place, self._command)
        results.accept(self._folder, self.launch.name, self._place)

    def _check(self) -> None:
        code = self._poll()
        if code is not None:
            raise failed(self.launch.name, code, self._log, RESUME)

    @contextlib.contextmanager
    def _ended_where_lost(self) -> Iterator[None]:
        """End at once what would disturb the turns of others; outside containers, all of them."""
        try:
            yield
        except (Lost, LaunchFailed) as why:
            text = str(why)
            if isinstance(why, Lost):
                text = (
                    f"launch {self.launch.name} {why}; its log is {self._log}. Finished launches "
                    f"are kept: {RESUME}"
                )
            self._ends.close()
            if not self.launch.layout:  # no container
                raise LaunchFailed(text) from None
            raise Lost(text) from None


def run(
    folder: Path,
    launches: Sequence[Launch],
    environments: Environments,
    clients: Mapping[str, docker.DockerClient],
    owner: tuple[int, int],
    within: Callable[[float], None],
) -> dict[str, str]:
    """Measure the launches of a block in turns, and take in what they found.

    Args:
        folder, environments, clients, owner: as runner.run() takes them.
        within: called with the share that is done, 0 to 1.

    Returns:
        Why a launch in a container failed, by its name; the others were measured all the same.

    Raises:
        LaunchFailed: one outside containers failed.
        ResultsError: what a launch wrote does not fit those before it.
    """
    members: dict[str, Member] = {}
    lost: dict[str, str] = {}

    def of_all(act: Callable[[Member], object]) -> None:
        for name in list(members):
            try:
                act(members[name])
            except Lost as why:
                lost[name] = str(why)
                del members[name]

    with contextlib.ExitStack() as block:
        for launch in launches:
            ends = block.enter_context(contextlib.ExitStack())
            client = clients.get(launch.environment)
            try:
                member = Member(folder, launch, environments(launch), client, owner, ends)
            except ContainerRefused as refusal:
                lost[launch.name] = str(refusal)
                ends.close()
            else:
                members[launch.name] = member
        of_all(Member.await_start)
        first = launches[0]
        arms = {name: member.ask for name, member in members.items()}
        order = random.Random(first.name)
        for name, why in conduct(arms, len(first.plan), first.measurement, order, within).items():
            lost[name] = str(why)
            del members[name]
        of_all(Member.await_end)
        for member in members.values():
            member.take_in(sorted(members))
    return lost
