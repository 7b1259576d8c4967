"""What an environment returns: a command, which it does not start. Plain values."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FOLDER = "/launch"  # where a container sees the launch's folder
PROGRAM = "experiments.programs.harness"
MODULE = ("-P", "-m", PROGRAM)
"""Python's words for the harness. Without -P it first imports from the folder that it starts in,
where any user may write: the driver's may be /tmp, and srun takes /tmp for one that a node lacks.
"""
SWITCHES = {
    "working_dir": "workdir",
    "network_mode": "network",
    "ipc_mode": "ipc",
    "pid_mode": "pid",
    "userns_mode": "userns",
    "devices": "device",
    "environment": "env",
    "labels": "label",
    "ulimits": "ulimit",
    "volumes": "volume",
}
"""Options of the Docker SDK that `docker run` spells otherwise, but for dashes in place of _."""
GATEWAY = {
    "docker": "{{(index .IPAM.Config 0).Gateway}}",
    "podman": "{{(index .Subnets 0).Gateway}}",
}
SERVICE = {
    "docker": [],
    "podman": ["export DOCKER_HOST=unix://$(podman info --format '{{.Host.RemoteSocket.Path}}')"],
}
"""Where the programs that speak to an engine find it, if not at their default address."""
PLACE = re.compile(r"\{(gateway|bridge|address\d+)\}")
SPECIAL = re.compile(r'["\\$`]')  # between double quotes of a shell


@dataclass(frozen=True)
class Process:
    """A command of this machine.

    Attributes:
        environment: variables beside those of the driver.
        grace: seconds that it needs to end what it started, once it is asked to end.
        in_job: whether it starts ranks on the nodes of the allocation that the driver runs in.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    grace: float = 3.0
    in_job: bool = False

    def shell(self) -> str:
        """The line that does the same in a shell."""
        return shlex.join(self.words())

    def words(self) -> list[str]:
        """The command with its variables, as env(1) takes them."""
        variables = [f"{name}={value}" for name, value in sorted(self.environment.items())]
        return ["env", *variables, *self.argv] if variables else list(self.argv)


@dataclass(frozen=True)
class Container:
    """A command in a container.

    Attributes:
        options: keyword arguments of the Docker SDK's containers.create; a seccomp filter is
            named by its path.
        engine: "docker" or "podman".
    """

    image: str
    argv: tuple[str, ...]
    options: Mapping[str, Any]
    engine: str = "docker"

    def shell(self) -> str:
        """The `docker run` or `podman run` line that does the same."""
        return shlex.join(self.words())

    def words(self, *flags: str) -> list[str]:
        """The words of that line; without `--detach` it waits for the container's end."""
        line = [self.engine, "run", *flags, "--rm"]
        for name, value in sorted(self.options.items()):
            line += _switch(name, value)
        return [*line, self.image, *self.argv]


@dataclass(frozen=True)
class Job:
    """Containers that wait on a network, and a process of this machine that starts ranks in them.

    Attributes:
        network: name of a bridge between the containers and this machine; with its labels, and
            whether it leads nowhere else.
        containers: in the order in which they start; all of one engine.
        process: its words may hold {gateway}, this machine's address on the network, {bridge},
            the interface that has it, and {address0}, {address1} ... of the containers, which
            are known once all of them run.
        entering: the words before a command that run it where the bridge is; none where that is
            this machine itself.
    """

    network: str
    labels: Mapping[str, str]
    internal: bool
    containers: tuple[Container, ...]
    process: Process
    entering: tuple[str, ...] = ()

    def process_at(self, places: Mapping[str, str]) -> Process:
        """The process, with what was found for the words in braces."""

        def filled(word: str) -> str:
            return PLACE.sub(lambda match: places[match[1]], word)

        variables = {name: filled(value) for name, value in self.process.environment.items()}
        argv = tuple(filled(word) for word in self.process.argv)
        return Process((*self.entering, *argv), variables)

    def shell(self) -> str:
        """The lines that do the same."""
        engine, network = self.containers[0].engine, self.network
        names = [container.options["name"] for container in self.containers]
        address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        there = "".join(f"{word} " for word in self.entering)
        create = [engine, "network", "create", *_switch("internal", self.internal)]
        create += _switch("labels", self.labels)
        return "\n".join(
            [
                shlex.join([*create, network]),
                *(shlex.join(container.words("--detach")) for container in self.containers),
                f"gateway=$({engine} network inspect --format '{GATEWAY[engine]}' {network})",
                f"bridge=$({there}ip -oneline address show to $gateway | cut -d' ' -f2)",
                *(
                    f"address{n}=$({engine} inspect --format '{address}' {name})"
                    for n, name in enumerate(names)
                ),
                *SERVICE[engine],
                there + " ".join(_quoted(word) for word in self.process.words()),
                shlex.join([engine, "rm", "--force", *names]),
                shlex.join([engine, "network", "rm", network]),
            ]
        )


Command = Process | Container | Job


def _quoted(word: str) -> str:
    """A word for a shell, with a variable for each name in braces."""
    texts = PLACE.split(word)
    if len(texts) == 1:
        return shlex.quote(word)
    texts[::2] = [SPECIAL.sub(r"\\\g<0>", text) for text in texts[::2]]
    texts[1::2] = [f"${name}" for name in texts[1::2]]
    return f'"{"".join(texts)}"'


def _switch(name: str, value: Any) -> list[str]:
    """The words for an option; for a flag that is not set, none."""
    switch = f"--{SWITCHES.get(name, name).replace('_', '-')}"
    if isinstance(value, bool):
        return [switch] if value else []
    if name == "ulimits":
        return [f"{switch}={limit['name']}={limit['soft']}:{limit['hard']}" for limit in value]
    if name == "volumes":
        return [f"{switch}={path}:{mount['bind']}:{mount['mode']}" for path, mount in value.items()]
    if isinstance(value, Mapping):
        between = ":" if name == "tmpfs" else "="
        return [f"{switch}={key}{between}{setting}" for key, setting in sorted(value.items())]
    return [f"{switch}={argument}" for argument in (value if isinstance(value, list) else [value])]


NAMESPACES = ("net", "uts", "ipc", "mount", "pid")
"""The namespaces that an emulated host has of its own, as nsenter(1) and unshare(1) name them."""
TEMPORARY = "/dev/shm"
"""TMPDIR of a host. PIDs of several hosts are equal, and an MPI names files in TMPDIR by PID."""


def entering(pid: int | str, folder: str = "/tmp") -> list[str]:
    """The words before a command that runs it where a process runs.

    Args:
        pid: of that process, in the PID namespace of the process that enters; a name in its place,
            where a command is only shown.
        folder: the command's working directory.
    """
    kinds = [f"--{kind}" for kind in NAMESPACES]
    own = ["env", f"--chdir={folder}", f"TMPDIR={TEMPORARY}"]
    return ["nsenter", f"--target={pid}", *kinds, "--", *own]
