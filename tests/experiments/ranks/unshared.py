"""Rank program: the harness where no memory can be shared."""

import sys
from pathlib import Path

from experiments.programs import harness
from hbmcomm.memory.shared import segment

segment.BACKINGS = ()
harness.run(Path(sys.argv[1]))
