"""What an environment answers with: a command that somebody else starts. Plain values."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SWITCHES = {
    "name": "--name",
    "user": "--user",
    "working_dir": "--workdir",
    "network_mode": "--network",
    "cap_drop": "--cap-drop",
    "cap_add": "--cap-add",
    "security_opt": "--security-opt",
    "shm_size": "--shm-size",
    "cpuset_cpus": "--cpuset-cpus",
    "cpuset_mems": "--cpuset-mems",
    "devices": "--device",
    "pids_limit": "--pids-limit",
}
"""The Docker SDK's options as switches of `docker run`, where one word stands for the other."""
FLAGS = {"read_only": "--read-only", "privileged": "--privileged"}


@dataclass(frozen=True)
class Process:
    """A command of this machine.

    Attributes:
        environment: variables beside those of the driver.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def shell(self) -> str:
        """The line that does the same in a shell."""
        variables = [f"{name}={value}" for name, value in sorted(self.environment.items())]
        return shlex.join(["env", *variables, *self.argv] if variables else self.argv)


@dataclass(frozen=True)
class Container:
    """A command in a container.

    Attributes:
        options: keyword arguments of the Docker SDK's containers.create; a seccomp filter stands in
            them by its path.
        engine: "docker" or "podman".
    """

    image: str
    argv: tuple[str, ...]
    options: Mapping[str, Any]
    engine: str = "docker"

    def shell(self) -> str:
        """The `docker run` or `podman run` line that does the same."""
        line = [self.engine, "run", "--rm"]
        for name, value in sorted(self.options.items()):
            line += _switch(name, value)
        return shlex.join([*line, self.image, *self.argv])


Command = Process | Container


def _switch(name: str, value: Any) -> list[str]:
    if name in FLAGS:
        return [FLAGS[name]] if value else []
    if name == "ulimits":
        return [f"--ulimit={each['name']}={each['soft']}:{each['hard']}" for each in value]
    if name == "environment":
        return [f"--env={key}={each}" for key, each in sorted(value.items())]
    if name == "labels":
        return [f"--label={key}={each}" for key, each in sorted(value.items())]
    if name == "tmpfs":
        return [f"--tmpfs={path}:{each}" for path, each in sorted(value.items())]
    if name == "volumes":
        return [f"--volume={path}:{each['bind']}:{each['mode']}" for path, each in value.items()]
    each_value = value if isinstance(value, list) else [value]
    return [f"{SWITCHES[name]}={each}" for each in each_value]
