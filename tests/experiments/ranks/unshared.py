"""Rank program: the harness where no memory can be shared."""

import sys
from pathlib import Path

from experiments.programs import harness, rank_process
from hbmcomm.memory import segment

segment.BACKINGS = ()
rank_process.run(harness.main, Path(sys.argv[1]))
