"""The launches of a block that are alive together, and take turns.

The ranks of one sleep while another's are timed. turns.py decides the order of turns, channel.py
carries that to the ranks.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from experiments.driver.launching import LaunchContext, log_of
from experiments.jobs.channel import START_PATIENCE, Channel
from experiments.jobs.containers import ContainerRefused
from experiments.jobs.execute import running
from experiments.jobs.failures import RESUME, LaunchFailed, failed
from experiments.jobs.sockets import NodeLost
from experiments.model.launch import Cell, Contest, Launch
from experiments.model.mpi_settings import DEFAULT
from experiments.results import store
from experiments.schedule.turns import NONE, Answer, Lost, Order, conduct, numbers

SETTING_PATIENCE = 60.0  # seconds in which a launch in a setting gets on, or is taken to hang
END_PATIENCE = 30.0  # seconds in which ranks that were asked to leave have written their result
POLL = 0.02


Refuse = Callable[[Launch, LaunchFailed], None]
"""Raises LaunchFailed where nothing can go on without a launch that was lost."""


class Member:
    """A launch that is alive, from its start to the end of `ends`.

    Attributes:
        loss: how it was lost, once it was.
    """

    def __init__(
        self,
        context: LaunchContext,
        launch: Launch,
        ends: contextlib.ExitStack,
        refuse: Refuse,
    ) -> None:
        """Start it.

        Raises:
            ContainerRefused: the engine does not want it.
        """
        self.launch, self._context, self._ends, self._refuse = launch, context, ends, refuse
        self.loss: LaunchFailed | None = None
        self._idle_since: float | None = time.monotonic()  # while it starts or ends
        self._numbers = {cell: number for number, cell in enumerate(launch.plan)}
        self._log = log_of(context.folder, launch.name)
        self._place = ends.enter_context(store.incoming(context.folder, launch.name))
        usual = launch.setting in ("", DEFAULT)
        patience = START_PATIENCE if usual else SETTING_PATIENCE
        over_nodes = launch.environment.on_cluster
        self._channel = ends.enter_context(
            Channel(self._place, launch.ranks, self._check, patience, over_nodes)
        )
        self._command = context.prepare(launch, self._place)
        client = context.clients.get(launch.environment)
        self._poll = ends.enter_context(running(self._command, self._log, client))

    def await_start(self) -> None:
        """Until its ranks wait for orders; Lost where they do not come that far."""
        with self._ended_where_lost():
            self._channel.open()
        self._idle_since = None

    def ask(self, cells: Sequence[Cell], orders: Sequence[Order]) -> list[Answer]:
        """Have its ranks carry out orders; Lost where they do not.

        Args:
            cells: of the block, as the orders number them; some may be none of its own.
        """
        own_numbers = {number: self._numbers.get(cell) for number, cell in enumerate(cells)}
        numbers = {NONE: NONE} | {
            here: there for here, there in own_numbers.items() if there is not None
        }
        own = [
            replace(order, cell=numbers[order.cell]) for order in orders if order.cell in numbers
        ]
        with self._ended_where_lost():
            answers = iter(self._channel.ask(own) if own else [])
        return [next(answers) if order.cell in numbers else Answer() for order in orders]

    def await_end(self) -> None:
        """Wait until the ranks, asked to leave, have left; Lost where they do not end well."""
        self._idle_since = began = time.monotonic()
        with self._ended_where_lost():
            while (code := self._poll()) is None:
                self._check_presence()
                if time.monotonic() - began > END_PATIENCE:
                    raise Lost(f"did not end within {END_PATIENCE:.0f} s")
                time.sleep(POLL)
            if code:
                raise failed(self.launch.name, code, self._log)

    def take_in(self, company: Sequence[str]) -> None:
        """Keep what its ranks wrote, as LaunchContext.take_in() does."""
        self._context.take_in(self.launch, self._place, self._command, company)

    def _check(self) -> None:
        code = self._poll()
        if code is not None:
            raise failed(self.launch.name, code, self._log)
        self._check_presence()

    def _check_presence(self) -> None:
        """Orders need nothing but the ranks; their start and their end may need more."""
        if self._idle_since is not None:
            self._context.check_presence(self.launch, time.monotonic() - self._idle_since)

    @contextlib.contextmanager
    def _ended_where_lost(self) -> Iterator[None]:
        """End at once what would disturb the turns of others; all of them where it is refused."""
        try:
            yield
            return
        except NodeLost as lost:
            raise self._context.machine_gone(self.launch, str(lost)) from lost
        except Lost as lost:
            text = f"launch {self.launch.name} {lost}; its log is {self._log}."
            loss = LaunchFailed(f"{text} Finished launches are kept: {RESUME}", str(lost))
        except LaunchFailed as failure:
            loss = failure
        at = self._channel.at()  # the arm that has its turn
        loss.cell = self.launch.plan[at] if at in range(len(self.launch.plan)) else None
        self._ends.close()
        self._refuse(self.launch, loss)
        self.loss = loss
        raise Lost(str(loss))


def run(
    context: LaunchContext,
    launches: Sequence[Launch],
    within: Callable[[float], None],
    refuse: Refuse,
) -> dict[str, LaunchFailed]:
    """Measure the launches of a block in turns, and take in what they found.

    Args:
        within: called with the share that is done, 0 to 1.
        refuse: raises where the loss of a launch ends all.

    Returns:
        How launches were lost, by their names; the others were measured all the same.

    Raises:
        LaunchFailed: from `refuse`.
        MachineGone: a machine that launches run on is gone.
        ResultsError: what a launch wrote does not fit those before it.
    """
    members: list[Member] = []
    losses: dict[str, LaunchFailed] = {}

    def alive() -> dict[str, Member]:
        return {member.launch.name: member for member in members if member.loss is None}

    def of_all(act: Callable[[Member], object]) -> None:
        for member in alive().values():
            with contextlib.suppress(Lost):
                act(member)

    with contextlib.ExitStack() as block:
        for launch in launches:
            ends = block.enter_context(contextlib.ExitStack())
            try:
                members.append(Member(context, launch, ends, refuse))
            except ContainerRefused as refusal:
                losses[launch.name] = refusal
                ends.close()
        of_all(Member.await_start)
        first, contests = launches[0], _united(launches)
        cells = [cell for contest in contests for cell in contest]
        arms = {name: partial(member.ask, cells) for name, member in alive().items()}

        def agreed(number: int, needed: int) -> int:
            return context.group(first.ranks, contests[number][0], needed)

        conduct(arms, numbers(contests), first.measurement, first.order, within, agreed)
        of_all(Member.await_end)
        company = alive()
        for member in company.values():
            member.take_in(sorted(company))
    return losses | {member.launch.name: member.loss for member in members if member.loss}


def _united(launches: Iterable[Launch]) -> list[tuple[Cell, ...]]:
    """The contests of all launches; each has the cells that any launch has in it."""
    by_contest: dict[Contest, dict[Cell, None]] = {}
    for launch in launches:
        for contest in launch.contests:
            by_contest.setdefault(contest[0].contest, {}).update(dict.fromkeys(contest))
    return [tuple(contest) for contest in by_contest.values()]
