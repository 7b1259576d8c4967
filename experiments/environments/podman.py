"""Podman: containers of an engine behind Docker's interface; docker.py makes its commands too."""

from experiments.environments.runtime import Runtime

RUNTIME = Runtime("podman", "Podman", program="podman", packages=("podman", "crun"), maps_ids=True)
