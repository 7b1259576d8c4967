"""A command that is run to its end, with its output as text."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Ended = subprocess.CompletedProcess[str]


def captured(words: Sequence[str | Path], **how: Any) -> Ended:
    """Run a command, whatever its exit code; output and errors are kept apart.

    Args:
        how: further arguments of subprocess.run.
    """
    return subprocess.run(words, capture_output=True, text=True, check=False, **how)
