"""Several containers as one job: what of their namespaces they share, and how ranks get into them.

`per-rank`: a container for each rank; they share /dev/shm, System V IPC and the process numbers.
`isolated`: nothing is shared but a network. In both, an MPI gets the bridge alone: which ways
its data takes is for the MPI to find, and nothing here forces it. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.environments import enter
from experiments.environments.mpi.mpiexec import across
from experiments.environments.process import Container, Job, Process

SEVERAL = ("per-rank", "isolated")
IDLE = ("sleep", "infinity")
"""What a container does while ranks come and go in it."""
NAMED_BY_HOST = ("mpich",)
"""MPIs with a UCX that names its files in /dev/shm after the host: ranks that share them abort if
their host names differ. All other MPIs tell their nodes apart by that name."""


def job(
    layout: str,
    container: Container,
    ranks: int,
    flavour: str,
    prefixes: tuple[Path, Path],
    cores: int,
    program: Sequence[str],
) -> Job:
    """One rank in each of as many containers.

    Args:
        layout: one of SEVERAL.
        container: what all of them are; its name begins theirs and is the network's.
        prefixes: of the MPI's environment, on this machine and in the containers.
        cores: that all containers have together.
        program: of a rank, at its place in the containers.
    """
    name = container.options["name"]
    names = [f"{name}-{n}" for n in range(ranks)]
    containers = tuple(
        replace(
            container, argv=IDLE, options=_options(container.options, layout, flavour, names, n)
        )
        for n in range(ranks)
    )
    hosts = [f"{{address{n}}}" for n in range(ranks)]
    home = ("{gateway}", "{bridge}")
    argv, variables = across(flavour, prefixes[0], hosts, home, cores, program, enter.LAUNCHER)
    entered = enter.variables(
        dict(zip(hosts, names, strict=True)),
        {prefixes[0]: prefixes[1], enter.LAUNCHER: Path("/bin/true")},
    )
    internal = container.engine == "docker"  # Podman's have no address on this machine
    process = Process(tuple(argv), variables | entered)
    return Job(name, container.options["labels"], internal, containers, process)


def _options(
    given: Mapping[str, Any], layout: str, flavour: str, names: Sequence[str], number: int
) -> dict[str, Any]:
    """The options of one of the containers."""
    options = {key: value for key, value in given.items() if key != "network_mode"}
    shared = layout == "per-rank"
    options |= {
        "name": names[number],
        "network": given["name"],
        "hostname": f"rank{0 if shared and flavour in NAMED_BY_HOST else number}",
    }
    if shared and number == 0:
        options |= {"ipc_mode": "shareable"}
    elif shared:
        options |= {"ipc_mode": f"container:{names[0]}", "pid_mode": f"container:{names[0]}"}
        options.pop("shm_size", None)  # the first one's is theirs
    return options
