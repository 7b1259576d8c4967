"""Decides how a bench goes on when an MPI hangs or crashes; starts nothing.

The call that failed is left out and its launch repeated. Later launches of the same MPI, setting
and rank count leave it out too.
"""

from dataclasses import replace

from experiments.attend import LaunchFailed
from experiments.bench.names import OURS
from experiments.bench.schedule import Launch, LeftOut
from experiments.bench.settings import DEFAULT
from experiments.bench.turn import FILE, parse

PATIENCE = 60.0  # seconds in which a launch in a setting gets on, or is taken to hang
MOST = 4  # failures of an MPI in one setting, after which it is given up there

Arm = tuple[str, str, int]  # MPI, setting, ranks


class Attempts:
    """The failures so far."""

    def __init__(self) -> None:
        self._left_out: dict[Arm, tuple[LeftOut, ...]] = {}
        self._failures: dict[Arm, int] = {}
        self._given_up: set[Arm] = set()

    def prepare(self, launch: Launch) -> Launch | None:
        """The launch without what failed before; None where its MPI and setting are given up."""
        if _arm(launch) in self._given_up:
            return None
        return replace(launch, without=self._left_out.get(_arm(launch), ()))

    def failed(self, launch: Launch, failure: LaunchFailed) -> str:
        """Record a failure; return one sentence for the user on what follows from it.

        Args:
            launch: as it was started.
            failure: with the text of the launch's file `turn.FILE`.

        Raises:
            LaunchFailed: `failure` itself, where no peer is to blame: one of our own contenders
                had its turn, or an MPI in its default setting failed outside all turns.
        """
        arm, turn = _arm(launch), parse(failure.left.get(FILE, ""))
        if (turn is None and launch.setting == DEFAULT) or (turn and turn.contender in OURS):
            raise failure
        who = f"{launch.flavour} ({launch.setting})"
        self._failures[arm] = self._failures.get(arm, 0) + 1
        if turn is None or self._failures[arm] >= MOST:
            self._given_up.add(arm)
            where = f"{self._failures[arm]} failures" if turn else "it failed outside all calls"
            return f"{who} is given up with {launch.ranks} ranks after {where}: {failure.why}"
        before = self._left_out.get(arm, ())
        repeated = any(
            (each.contender, each.form, each.operation)
            == (turn.contender, turn.form, turn.operation)
            for each in before
        )
        size = None if repeated else turn.bytes
        left_out = LeftOut(turn.contender, turn.form, turn.operation, size, failure.why)
        self._left_out[arm] = (*before, left_out)
        sizes = "any size" if size is None else f"{size:,} bytes"
        return (
            f"{who} goes on without {turn.contender}'s {turn.form} {turn.operation} of {sizes}: "
            f"{failure.why}"
        )


def _arm(launch: Launch) -> Arm:
    return launch.flavour, launch.setting, launch.ranks
