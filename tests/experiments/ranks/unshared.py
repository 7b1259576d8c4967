"""Rank program: the harness where no rank can map another's memory."""

import sys
from pathlib import Path

from experiments.programs import harness
from hbmcomm.memory.shared import segment

segment.BACKINGS = ()
harness.run(Path(sys.argv[1]))
