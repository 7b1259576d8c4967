"""Rank program: each changed contender has one threshold changed, over the same arrays."""

import os
import sys
from pathlib import Path

from mpi4py import MPI

import hbmcomm
from experiments.implementations.entrants import Entrants
from experiments.measure.pools import Pools
from experiments.model.contender_names import change
from experiments.programs.launch_folder import read_launch
from hbmcomm.transports import tuning

COMM = MPI.COMM_WORLD
before = dict(os.environ)
folder = Path(sys.argv[1])
launch = read_launch(folder)
pools, entrants = Pools(COMM, launch, 0), Entrants(COMM, launch, folder, os.sched_getaffinity(0))
fields = {entry.variable: entry.field for entry in tuning.TABLE}
sources, seen = {}, 0
for cell in launch.plan:
    pool = pools.of(cell.memory)
    sources[cell.buffers] = hbmcomm.source(pool.send)
    setting = change(cell.transport)
    if setting is None:
        continue
    variable, value = setting
    assert entrants.of(cell, pool)[1] is pool
    theirs = entrants._changed[cell.transport, pool.kind]
    expected = dict(pool.communicators["direct"]._state.tuning) | {fields[variable]: int(value)}
    expected["short_bytes"] = max(expected["short_bytes"], expected["eager_bytes"])
    assert dict(theirs._state.tuning) == expected, (variable, value)
    theirs.Bcast(pool.send[:1024], 0)
    seen += 1
assert dict(os.environ) == before
assert sources == {"arena": "arena", "numpy": None}
assert len(entrants._changed) > 8 and seen > len(entrants._changed)
entrants.close()
print("ok")
