"""Names of what a launch runs on: environments, profiles, layouts, MPIs, emulated machines."""

from pathlib import Path

MPIS = ("openmpi", "mpich", "impi")
ENVIRONMENTS = ("host", "userland", "docker", "podman", "charliecloud", "apptainer")
ENGINES = ("docker", "podman")
"""Environments whose containers have a profile and a layout; the others have their one way."""
PROFILES = ("default", "tuned", "privileged")
LAYOUTS = ("one", "per-rank", "isolated")

VM, VM_DOCKER = "vm", "vm-docker"
"""In an emulated machine, "vm:NAME": as on the host, and in Docker there, "vm-docker:NAME"."""
MACHINES = Path(__file__).parents[1] / "emulation" / "machines"
"""A file for each emulated machine; emulation/description.py reads them."""


def machine_names() -> list[str]:
    """The emulated machines."""
    return sorted(path.stem for path in MACHINES.glob("*.toml"))


def emulated() -> tuple[str, ...]:
    """The environments in emulated machines."""
    return tuple(f"{way}:{name}" for way in (VM, VM_DOCKER) for name in machine_names())


def machine_of(environment: str) -> str:
    """The emulated machine that an environment runs in, "" for a real one."""
    way, _, name = environment.partition(":")
    return name if way in (VM, VM_DOCKER) else ""


def in_docker_there(environment: str) -> bool:
    """Whether it is Docker in an emulated machine."""
    return environment.partition(":")[0] == VM_DOCKER
