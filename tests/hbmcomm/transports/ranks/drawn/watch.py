"""The step that a rank is in, for whoever reads it after a hang or a crash.

A step that takes more than STUCK to STUCK + REARMED seconds prints the Python stacks of all threads
and ends this process with code 1, whatever holds Python's lock. Where CPUs have several ranks,
STUCK is so many times longer: ranks of Intel MPI wait without yielding, and keep others off a CPU.
"""

import faulthandler
import mmap
import os
import time
from pathlib import Path

STUCK = 20.0  # seconds
REARMED = 4.0  # seconds from one arming of the watch to the next, which takes milliseconds
WIDTH = 2000  # bytes of a step's description


class Watch:
    """Keeps this rank's step in the file FOLDER/rank-N.step, which outlives the process."""

    def __init__(self, folder: str, rank: int, ranks: int) -> None:
        self._patience = STUCK * -(-ranks // (os.cpu_count() or 1)) + REARMED
        path = Path(folder) / f"rank-{rank}.step"
        path.write_bytes(bytes(WIDTH))
        with path.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), WIDTH)
        self._armed = 0.0

    def step(self, description: str) -> None:
        """This rank begins a step now."""
        if time.monotonic() - self._armed > REARMED:
            faulthandler.dump_traceback_later(self._patience, exit=True)
            self._armed = time.monotonic()
        self._mapped[:] = description.encode()[:WIDTH].ljust(WIDTH)

    def done(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._mapped[:] = b"at the end".ljust(WIDTH)
