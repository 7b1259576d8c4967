"""What an MPI calls as it calls ssh: runs a command in the container of a host.

`enter.sh [OPTIONS] HOST COMMAND...`, as ssh takes them. Ends what it started when it is told to
end: a process of `docker exec` outlives whoever asked for it.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import docker

from experiments.processes import tracking

LAUNCHER = Path(__file__).with_name("enter.sh")
PYTHON = "HBMCOMM_PYTHON"
"""Variable: the interpreter that holds this module."""
CONTAINERS = "HBMCOMM_CONTAINERS"
"""Variable: HOST=CONTAINER of each, separated by blanks."""
PATHS = "HBMCOMM_PATHS"
"""Variable: PATH=PATH, of this machine and of the containers, separated by colons."""
ENDED = 128  # plus the signal's number: how a shell tells that a signal ended its command


def entry(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[str, str]:
    """The container to enter and the line for its shell.

    Launchers name files by their paths on this machine, and quote for a shell.

    Raises:
        ValueError: no host, or one without a container.
    """
    words = list(argv)
    while words and words[0].startswith("-"):
        words.pop(0)
    containers = dict(each.split("=", 1) for each in environment[CONTAINERS].split())
    if not words or words[0] not in containers:
        raise ValueError(f"{words[:1]} is none of the hosts {sorted(containers)}")
    line = " ".join(words[1:])
    for here, there in (pair.split("=", 1) for pair in environment[PATHS].split(":") if pair):
        line = line.replace(here, there)
    return containers[words[0]], line


def variables(
    containers: Mapping[str, str], paths: Mapping[Path, Path], python: str
) -> dict[str, str]:
    """What the launcher is to find in its environment.

    Args:
        containers: their names, by host.
        paths: in the containers, by those on this machine.
        python: the interpreter that holds this module.
    """
    return {
        PYTHON: python,
        CONTAINERS: " ".join(f"{host}={name}" for host, name in containers.items()),
        PATHS: ":".join(f"{here}={there}" for here, there in paths.items()),
    }


def main() -> int:
    """Enter, pass the output on, and return the command's exit code."""
    container, line = entry(sys.argv[1:], os.environ)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    mark = f"{os.environ.get(tracking.MARK) or tracking.identity(os.getpid())}.{container}"
    client = docker.from_env()
    try:
        return _run(client.api, container, line, mark)
    finally:
        tracking.end_marked(mark)


def _run(api: Any, container: str, line: str, mark: str) -> int:
    made = api.exec_create(container, ["sh", "-c", line], environment={tracking.MARK: mark})
    for output, error in api.exec_start(made["Id"], stream=True, demux=True):
        for text, file in ((output, sys.stdout), (error, sys.stderr)):
            if text:
                file.buffer.write(text)
                file.flush()
    return int(api.exec_inspect(made["Id"])["ExitCode"])


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(ENDED + number)


if __name__ == "__main__":
    sys.exit(main())
