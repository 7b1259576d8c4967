"""The driver's ends of pipes to the ranks of a launch: one for each rank, and one for answers.

They are in the launch's own folder, which every environment lets its ranks see: no network, no
privilege. When the driver ends, however that may be, the kernel closes its ends, and the ranks that
sleep in a read end as well.
"""

import contextlib
import errno
import os
import select
import stat
from pathlib import Path

from experiments.programs.measure.lines import ANSWERS, pipe_of, whole_lines
from experiments.schedule.turns import Lost

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
        """Connect the ranks that wait for orders; whether all do.

        Raises:
            Lost: a rank, to which the folder may belong, has put something else in a pipe's place.
        """
        for path in self._paths[len(self._orders) :]:
            try:
                pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return False  # no reader yet
                if not path.parent.exists():  # the user removes the campaign
                    raise
                raise Lost(f"was ended, its pipe {path.name} has gone: {error.strerror}") from error
            self.callback(os.close, pipe)
            if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
                raise Lost(f"was ended, its pipe {path.name} is none any more")
            self._orders.append(pipe)
        return True

    def send(self, line: str) -> None:
        """Send a line to all ranks; OSError where one has ended."""
        for pipe in self._orders:
            os.write(pipe, line.encode())

    def receive(self, patience: float) -> list[str]:
        """The lines that ranks have sent, once there are some; none after `patience` seconds.

        Raises:
            ValueError: a rank sends no lines.
        """
        if not select.select([self._answers], [], [], patience)[0]:
            return []
        lines, self._part = whole_lines(self._part + os.read(self._answers, ANSWER_BYTES))
        return lines
