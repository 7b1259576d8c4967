"""What an MPI calls as it calls ssh: runs a command in the place of a host.

`enter.sh [OPTIONS] HOST COMMAND...`, as ssh takes them. A place is a container, or the namespaces
of an emulated host. A signal that ends it ends what it started in a container too: a process
of `docker exec` outlives its client.
"""

import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any, NoReturn

from experiments.environments.process import entering
from experiments.processes import tracking

LAUNCHER = Path(__file__).with_name("enter.sh")
PYTHON = "HBMCOMM_PYTHON"
"""Variable: the interpreter that holds this module."""
PLACES = "HBMCOMM_PLACES"
"""Variable: HOST=PLACE of each, separated by blanks."""
PATHS = "HBMCOMM_PATHS"
"""Variable: PATH=PATH, of this machine and of the containers, separated by colons."""
FIRST = "HBMCOMM_FIRST"
"""Variable: on emulated hosts, the words before the shell."""
NAMESPACES = "pid:"
"""How the place of an emulated host begins; the PID of a process in its namespaces follows."""
ENDED = 128  # plus the signal's number: how a shell reports that a signal ended its command


def entry(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[str, str]:
    """The place to enter and the line for its shell.

    Launchers name files by their paths on this machine, and quote for a shell.

    Raises:
        ValueError: no host, or one without a place.
    """
    words = list(dropwhile(lambda word: word.startswith("-"), argv))
    places = dict(pair.split("=", 1) for pair in environment[PLACES].split())
    if not words or words[0] not in places:
        raise ValueError(f"{words[:1]} is none of the hosts {sorted(places)}")
    line = " ".join(words[1:])
    for here, there in (pair.split("=", 1) for pair in environment[PATHS].split(":") if pair):
        line = line.replace(here, there)
    return places[words[0]], line


def variables(
    places: Mapping[str, str], paths: Mapping[Path, Path], first: Sequence[str] = ()
) -> dict[str, str]:
    """What the launcher is to find in its environment.

    Args:
        places: by host, the name of a container, or NAMESPACES and a PID.
        paths: in the containers, or where `first` leads, by those on this machine.
        first: words before a command on an emulated host.
    """
    return {
        **({FIRST: shlex.join(first)} if first else {}),
        PYTHON: sys.executable,
        PLACES: " ".join(f"{host}={place}" for host, place in places.items()),
        PATHS: ":".join(f"{here}={there}" for here, there in paths.items()),
    }


def main() -> int:
    """Enter, and return the command's exit code."""
    place, line = entry(sys.argv[1:], os.environ)
    if place.startswith(NAMESPACES):
        words = entering(int(place.removeprefix(NAMESPACES)))
        words += shlex.split(os.environ.get(FIRST, ""))
        os.execvp(words[0], [*words, "sh", "-c", line])
    return _in_container(place, line)


def _in_container(container: str, line: str) -> int:
    """Run a line in a container and pass its output on."""
    import docker  # takes a third of a second, which emulated hosts need not pay

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    mark = f"{os.environ.get(tracking.MARK) or tracking.own_mark()}.{container}"
    api: Any = docker.from_env().api
    try:
        made = api.exec_create(container, ["sh", "-c", line], environment={tracking.MARK: mark})
        for output, error in api.exec_start(made["Id"], stream=True, demux=True):
            for text, file in ((output, sys.stdout), (error, sys.stderr)):
                if text:
                    file.buffer.write(text)
                    file.flush()
        return int(api.exec_inspect(made["Id"])["ExitCode"])
    finally:
        tracking.end_marked(mark)


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(ENDED + number)


if __name__ == "__main__":
    sys.exit(main())
