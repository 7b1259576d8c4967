#!/bin/sh
# The one file that an MPI takes in place of ssh: enter.py, in the driver's own Python.
exec "$HBMCOMM_PYTHON" -m experiments.environments.enter "$@"
