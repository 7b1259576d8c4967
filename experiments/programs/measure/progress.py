"""Reports how far a launch is: a file of "CELLS TOTAL OPERATIONS".

CELLS of TOTAL cells are done. OPERATIONS counts over all cells and grows within a slow one too,
so only a launch that hangs leaves the text as it is.
"""

import math
import time
from pathlib import Path

SECONDS = 0.2  # between two writes, at least


class Progress:
    """One rank's say; a rank without a path says nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._cells = self._total = self._operations = 0
        self._told = -math.inf

    def cells(self, done: int, total: int) -> None:
        """So many of all cells are done."""
        self._cells, self._total = done, total
        self._tell()

    def tick(self, operations: int) -> None:
        """So many more operations are done."""
        self._operations += operations
        self._tell()

    def _tell(self) -> None:
        if self._path is not None and time.monotonic() - self._told > SECONDS:
            self._told = time.monotonic()
            text = f"{self._cells} {self._total} {self._operations}"
            self._path.write_text(text, encoding="utf-8")
