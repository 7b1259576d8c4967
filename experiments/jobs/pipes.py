"""The driver's ends of pipes to the ranks of a launch: one for each rank, and one for answers.

They are in the launch's own folder, which every environment lets its ranks see: no network, no
privilege. When the driver ends, however that may be, the kernel closes its ends, and the ranks that
sleep in a read end as well.
"""

import contextlib
import errno
import os
import select
from pathlib import Path

from experiments.programs.measure.lines import ANSWERS, pipe_of

ANSWER_BYTES = 65536
PRIVATE = 0o600  # a reader takes orders from the rank that they are for


class Pipes(contextlib.ExitStack):
    """Lines to the ranks of a launch and from them; closed with the block."""

    def __init__(self, place: Path, ranks: int) -> None:
        """Make the pipes in the launch's folder, before the launch is started."""
        super().__init__()
        self._paths = [place / pipe_of(rank) for rank in range(ranks)]
        self._orders: list[int] = []
        for path in (*self._paths, place / ANSWERS):
            os.mkfifo(path, PRIVATE)
        # For writing too: it is then never at its end, whichever rank ends.
        self._answers = os.open(place / ANSWERS, os.O_RDWR | os.O_NONBLOCK)
        self.callback(os.close, self._answers)
        self._part = b""

    def connect(self) -> bool:
        """Connect the ranks that wait for orders; whether all do."""
        for path in self._paths[len(self._orders) :]:
            try:
                self._orders.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return False  # no reader yet
            self.callback(os.close, self._orders[-1])
        return True

    def send(self, line: str) -> None:
        """Send a line to all ranks; OSError where one has ended."""
        for pipe in self._orders:
            os.write(pipe, line.encode())

    def receive(self, patience: float) -> list[str]:
        """The lines that ranks have sent, once there are some; none after `patience` seconds."""
        if not select.select([self._answers], [], [], patience)[0]:
            return []
        *lines, self._part = (self._part + os.read(self._answers, ANSWER_BYTES)).split(b"\n")
        return [line.decode(errors="replace") for line in lines]
