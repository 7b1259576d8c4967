"""Rank program: each communicator of a launch has one threshold changed, over the same arrays."""

import json
import os
import sys
from pathlib import Path

from mpi4py import MPI

import hbmcomm
from experiments.bench.tune import program
from experiments.bench.tune.schedule import Launch
from hbmcomm.collectives.core import tuning

COMM = MPI.COMM_WORLD
before = dict(os.environ)
launch = Launch.from_dict(json.loads((Path(sys.argv[1]) / "launch.json").read_text()))
pools = {private: program._pool(COMM, launch, 0, private) for private in (False, True)}
made = program._communicators(COMM, launch, pools)
assert dict(os.environ) == before
fields = {entry.variable: entry.field for entry in tuning.TABLE}
plain = dict(pools[False].communicators["direct"]._state.tuning)
assert len(made) == sum(len(trial.values) for trial in launch.trials) > 8
for (variable, value), communicator in made.items():
    theirs = dict(communicator._state.tuning)
    expected = plain | {fields[variable]: int(value)}
    expected["short_bytes"] = max(expected["short_bytes"], expected["eager_bytes"])
    assert theirs == expected, (variable, value, theirs)
    array = pools[False].send[:1024]
    communicator.Bcast(array, 0)
assert hbmcomm.source(pools[False].send) == "arena"
assert hbmcomm.source(pools[True].send) is None
for each in made.values():
    each.Free()
print("ok")
