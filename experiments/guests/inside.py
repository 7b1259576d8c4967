"""A launch's command in a guest: what stands here for it, started and ended like any process.

Brings the launch's folder to the guest, runs the command there, relays what it says, keeps the
progress file up to date, and brings back what the command wrote. Ends with the command's exit code.
"""

import argparse
import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.environments.vm import LAUNCHES
from experiments.guests import agent
from experiments.guests.agent import Agent, Ended
from experiments.model.errors import ExperimentsError

USER = 1000
WORKING = "/hbmcomm"
"""The working directory in the guest: what of the checkout commands name, such as the tuned filter,
lies below it."""
POLL = 0.3  # seconds between two looks
LOOK = agent.CHUNK  # bytes of what the command says in one look: it may say more, and faster
PATIENCE = 120.0  # seconds for a guest that another client keeps busy
END_PATIENCE = 1.0  # seconds in which a command must end that was told to
VARIABLES = (
    *("PATH=/opt/hbmcomm/bin:/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"),
    "OPENBLAS_NUM_THREADS=1",  # else NumPy starts a thread for each CPU: 5 s to load there, not 3
)
PROGRESS = "progress"


def run(socket: Path, folder: Path, words: Sequence[str], root: bool, after: str) -> int:
    """The command in the guest over a folder, whatever it writes there brought back; its code.

    Args:
        folder: on this machine; of the same name below LAUNCHES in the guest.
        root: run it as root, not as an ordinary user.
        after: a line for the guest's shell, run as root once the command has ended, or has been.
    """
    place = str(LAUNCHES / folder.name)
    with agent.connected(socket, PATIENCE) as guest:
        told = _noted()
        brought = _bring(guest, folder, place)
        process = guest.start(_as_one(words, place, root))
        try:
            return _attend(guest, process, folder, place, told)
        finally:
            if after:
                guest.run("/bin/sh", "-c", after)
            _fetch(guest, folder, place, brought)


def _bring(guest: Agent, folder: Path, place: str) -> set[str]:
    """The folder's files to the guest, the user's there; their names."""
    here = [path for path in folder.iterdir() if path.is_file()]
    made = f"rm -rf {shlex.quote(place)} && mkdir -p {shlex.quote(place)}"
    _do(guest, made)
    for path in here:
        guest.write(f"{place}/{path.name}", path.read_bytes())
    _do(guest, f"chown -R {USER}:{USER} {shlex.quote(place)}")
    return {path.name for path in here}


def _as_one(words: Sequence[str], place: str, root: bool) -> list[str]:
    """The command with a session of its own, so that it can be ended whole, and with its log."""
    user = [] if root else ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups"]
    line = f"cd {WORKING} && exec {shlex.join(words)} >{shlex.quote(_log(place))} 2>&1"
    return ["/usr/bin/setsid", *user, "env", "-i", *VARIABLES, "sh", "-c", line]


def _noted() -> list[int]:
    """Where signals that tell this process to end are noted from now on, to be looked at.

    What they would cut off is an exchange with the guest, and sight of what that begins or ends.
    """
    told: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, frame: told.append(number))
    return told


def _attend(guest: Agent, process: int, folder: Path, place: str, told: list[int]) -> int:
    """Relay the command's words and its progress until it ends, or must; its exit code."""
    said = 0
    while True:
        found: Ended | None = guest.ended(process)
        more = _relay(guest, place, said)
        said += more
        if found is not None:
            while more and not told:
                more = _relay(guest, place, said)
                said += more
            return found.code if found.code >= 0 else 128 - found.code
        progress = _read(guest, f"{place}/{PROGRESS}")
        if progress is not None:
            (folder / PROGRESS).write_bytes(progress)
        if told:
            _end(guest, process)
            return 128 + signal.SIGTERM
        if more < LOOK:
            time.sleep(POLL)


def _relay(guest: Agent, place: str, said: int) -> int:
    """What has been said since, as much as one look takes; its length."""
    more = _read(guest, _log(place), said, LOOK) or b""
    sys.stdout.buffer.write(more)
    sys.stdout.buffer.flush()
    return len(more)


def _end(guest: Agent, process: int) -> None:
    """Ask the command's whole group to end, then end it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        guest.run("/bin/sh", "-c", f"kill -s {number.value} -- -{process}")
        deadline = time.monotonic() + END_PATIENCE
        while time.monotonic() < deadline:
            if guest.ended(process) is not None:
                return
            time.sleep(POLL)


def _fetch(guest: Agent, folder: Path, place: str, brought: set[str]) -> None:
    """The files that the command wrote, to the folder on this machine; no folders in it."""
    line = f"cd {shlex.quote(place)} && find . -maxdepth 1 -type f -printf '%f\\n'"
    names = guest.run("/bin/sh", "-c", line).output.split("\n")
    for name in names:
        if name and name not in brought:
            content = _read(guest, f"{place}/{name}")
            if content is not None:
                (folder / name).write_bytes(content)
    _do(guest, f"rm -rf {shlex.quote(place)} {shlex.quote(_log(place))}")


def _log(place: str) -> str:
    """Beside the folder, not in it: it is relayed, not fetched. The user makes it."""
    return f"/tmp/{Path(place).name}.log"


def _read(guest: Agent, path: str, offset: int = 0, most: float = math.inf) -> bytes | None:
    try:
        return guest.read(path, offset, most)
    except FileNotFoundError:
        return None


def _do(guest: Agent, line: str) -> None:
    found = guest.run("/bin/sh", "-c", line)
    if found.code:
        raise agent.GuestLost(f"the guest could not do {line!r}: {found.output.strip()}")


def main() -> None:
    """Parse the words and run."""
    parser = argparse.ArgumentParser(prog="inside", description=__doc__)
    parser.add_argument("--agent", type=Path, required=True, help="the guest agent's socket")
    parser.add_argument("--folder", type=Path, required=True, help="the launch's folder")
    parser.add_argument("--root", action="store_true", help="run the command as root")
    parser.add_argument("--after", default="", help="a shell line for the guest, run as root")
    parser.add_argument("words", nargs="+")
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as SIGTERM, before the guest has answered
    try:
        sys.exit(run(asked.agent, asked.folder, asked.words, asked.root, asked.after))
    except ExperimentsError as error:
        print(error, file=sys.stderr)
        sys.exit(os.EX_UNAVAILABLE)


if __name__ == "__main__":
    main()
