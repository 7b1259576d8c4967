"""Podman: containers of an engine behind Docker's interface; docker.py makes its commands too."""

from experiments.environments.runtime import Runtime

RUNTIME = Runtime(
    "podman",
    "Podman",
    program="podman",
    packages=("podman", "crun"),
    not_for_users=(
        "Podman without root gives containers user numbers of its own, so that they cannot write "
        "results",
        "as root, or with --env docker or charliecloud",
    ),
)
