#!/bin/sh
# The one file that an MPI takes in place of ssh: enter.py, in the driver's own Python, which imports
# nothing from the folder that it is started in (-P): that may be /tmp, where any user writes.
exec "$HBMCOMM_PYTHON" -P -m experiments.environments.enter "$@"
