"""Decides how a campaign goes on when a launch fails; starts nothing.

A container's failure is a finding: the others go on, and an arm that keeps failing is not tried
again. Where MPIs are the arms, a contender that hangs or crashes is left out, and its launch is
repeated; later launches of the same arm leave it out too. Every other failure ends the campaign.
"""

from dataclasses import replace

from experiments.jobs.failures import LaunchFailed
from experiments.model.contender_names import is_ours
from experiments.model.launch import Launch, LeftOut
from experiments.model.mpi_settings import DEFAULT

FAILURES = 2  # of a container arm, after which its other launches are not tried any more
PEER_FAILURES = 4  # of contenders of an MPI in one setting, after which it is given up

Arm = tuple[str, str, int]  # arm, MPI, ranks


class Attempts:
    """The failures so far."""

    def __init__(self) -> None:
        self._failures: dict[Arm, list[str]] = {}
        self._left_out: dict[Arm, tuple[LeftOut, ...]] = {}
        self._given_up: set[Arm] = set()

    @property
    def failures(self) -> list[str]:
        """What failed in containers, one message each."""
        return [text for texts in self._failures.values() for text in texts]

    def prepare(self, launch: Launch) -> Launch | None:
        """The launch without what failed before; None where its arm is given up."""
        if _arm(launch) in self._given_up:
            return None
        without = self._left_out.get(_arm(launch), ())
        return replace(launch, without=without) if without else launch

    def refuse(self, launch: Launch, loss: LaunchFailed) -> None:
        """Raise it where the campaign cannot go on without the launch."""
        if launch.spares_peers:
            ours = loss.cell is not None and is_ours(loss.cell.transport)
            if ours or (loss.cell is None and launch.setting == DEFAULT):
                raise loss
        elif not launch.layout:  # no container
            raise loss

    def failed(self, launch: Launch, loss: LaunchFailed) -> str:
        """Record a failure that was not refused; what follows from it, "" for nothing at once."""
        arm = _arm(launch)
        if not launch.spares_peers:
            self._failures.setdefault(arm, []).append(str(loss))
            if len(self._failures[arm]) >= FAILURES:
                self._given_up.add(arm)
            return ""
        before, cell = self._left_out.get(arm, ()), loss.cell
        if cell is None or len(before) + 1 >= PEER_FAILURES:
            self._given_up.add(arm)
            where = f"{len(before) + 1} failures" if cell else "it failed outside all calls"
            return f"{launch.arm} is given up with {launch.ranks} ranks after {where}: {loss.why}"
        call = (cell.operation, cell.transport, cell.form)
        again = any(
            (left_out.operation, left_out.transport, left_out.form) == call for left_out in before
        )
        size = None if again else cell.bytes
        self._left_out[arm] = (*before, LeftOut(*call, size, loss.why))
        sizes = "any size" if size is None else f"{size:,} bytes"
        return (
            f"{launch.arm} goes on without {cell.transport}'s {cell.form} {cell.operation} of "
            f"{sizes}: {loss.why}"
        )


def _arm(launch: Launch) -> Arm:
    return launch.arm, launch.mpi, launch.ranks
