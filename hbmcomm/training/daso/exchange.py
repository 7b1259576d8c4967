"""One exchange of parameters between hosts, from its begin to the merge of what came.

It knows the ranks that take part and the arrays. The schedule knows when it begins and ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mpi4py import MPI

from hbmcomm.communicator import Communicator
from hbmcomm.training.daso.parameters import Array, Flat


class Exchange:
    """A sum of parameters over one rank of each host, in flight or done.

    Args:
        batch: The batch of the epoch after which it began.
        turn: The number of the ranks that take part, inside their hosts.
        total: The sum, or this rank's part of it while it is in flight; None on ranks that do not
            take part.
    """

    def __init__(self, batch: int, turn: int, total: Flat | None) -> None:
        self.batch, self.turn, self.total = batch, turn, total
        self._request: MPI.Request | None = None

    def begin(self, across: Communicator, parameters: Sequence[Array]) -> None:
        """Start the sum; `across` has one rank of each host, all of which call this."""
        assert self.total is not None
        self.total.pack(parameters)
        self._request = across.Iallreduce(MPI.IN_PLACE, self.total.whole)

    def wait(self) -> None:
        """Wait until the sum is there.

        Raises:
            PeerError: A rank that takes part died or left.
        """
        if self._request is not None:
            self._request.Wait()
            self._request = None

    def merge(self, own: Sequence[Array], merged: Flat, waited: int, hosts: int) -> None:
        """Merge the sum with the parameters of now, on a rank that takes part.

        With x = `own`, the parameters of now, S = `waited`, the batches since the begin, and
        P = `hosts`, `merged` gets (2 S x + sum) / (2 S + P); with S = 0 that is the mean of the
        hosts.
        """
        self.wait()
        assert self.total is not None
        share = 1 / (2 * waited + hosts)
        for result, total, each in zip(merged.parts, self.total.parts, own, strict=True):
            np.multiply(each, 2 * waited * share, out=result)
            np.multiply(total, share, out=total)
            result += total
