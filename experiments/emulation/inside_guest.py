"""Runs a launch's command in a guest; the driver starts and ends it like any process.

Copies the launch's folder to the guest, runs the command there, relays its output, keeps the
progress file up to date, and copies back what the command wrote. Ends with the command's exit code.
"""

import argparse
import codecs
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.console import print_text
from experiments.emulation import guest_agent
from experiments.emulation.guest_agent import Agent, Ended
from experiments.environments.profiles import CONTAINER_USER as USER
from experiments.environments.vm import LAUNCHES
from experiments.model.errors import ExperimentsError

WORKING = "/hbmcomm"
"""The working directory in the guest, with those files of the checkout that commands name, such as
the tuned filter."""
POLL = 0.3  # seconds between two looks
LOOK = guest_agent.CHUNK  # bytes of output in one look; a command may write faster
MOST_PROGRESS = 2**10  # bytes of the progress file
MOST_FILES = 2**26  # bytes of all files that a launch leaves
FETCH_PATIENCE = 600.0  # seconds for all of them; an emulated CPU needs a second for a MiB
PATIENCE = 120.0  # seconds for a guest that another client keeps busy
END_PATIENCE = 1.0  # seconds between SIGTERM and SIGKILL
VARIABLES = (
    *("PATH=/opt/hbmcomm/bin:/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"),
    "OPENBLAS_NUM_THREADS=1",  # a thread for each CPU makes NumPy's import take 5 s there, not 3
)
PROGRESS = "progress"
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""The name of a file that a guest may bring into a launch's folder."""


def run(socket: Path, folder: Path, words: Sequence[str], root: bool, after: str) -> int:
    """Run the command in the guest over a copy of a folder, copy back its files; its exit code.

    Args:
        folder: on this machine; its copy in the guest has the same name below LAUNCHES.
        root: run it as root, not as an ordinary user.
        after: a line for the guest's shell, run as root after the command's end.
    """
    remote = str(LAUNCHES / folder.name)
    with guest_agent.connected(socket, PATIENCE) as guest:
        signals = _signals()
        brought = _bring(guest, folder, remote)
        process = guest.start(_as_one(words, remote, root))
        try:
            return _attend(guest, process, folder, remote, signals)
        finally:
            if after:
                guest.run("/bin/sh", "-c", after)
            _fetch(guest, folder, remote, brought)


def _bring(guest: Agent, folder: Path, remote: str) -> set[str]:
    """Copy the folder's files to the guest, owned by its user; their names."""
    files = [path for path in folder.iterdir() if path.is_file()]
    _do(guest, f"rm -rf {shlex.quote(remote)} && mkdir -p {shlex.quote(remote)}")
    for path in files:
        guest.write(f"{remote}/{path.name}", path.read_bytes())
    _do(guest, f"chown -R {USER}:{USER} {shlex.quote(remote)}")
    return {path.name for path in files}


def _as_one(words: Sequence[str], remote: str, root: bool) -> list[str]:
    """The command in a session of its own, so that a signal reaches all of it, with a log."""
    user = [] if root else ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups"]
    line = f"cd {WORKING} && exec {shlex.join(words)} >{shlex.quote(_log(remote))} 2>&1"
    return ["/usr/bin/setsid", *user, "env", "-i", *VARIABLES, "sh", "-c", line]


def _signals() -> list[int]:
    """A list that collects SIGTERM and SIGINT from now on, for the caller to check.

    An interrupted exchange with the guest would hide what it began or ended.
    """
    signals: list[int] = []
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda number, frame: signals.append(number))
    return signals


def _attend(guest: Agent, process: int, folder: Path, remote: str, signals: list[int]) -> int:
    """Relay the command's output and progress until it ends or a signal arrives; its exit code."""
    relayed, decoder = 0, codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        ended: Ended | None = guest.ended(process)
        more = _relay(guest, remote, relayed, decoder)
        relayed += more
        if ended is not None:
            while more and not signals:
                more = _relay(guest, remote, relayed, decoder)
                relayed += more
            return ended.code if ended.code >= 0 else 128 - ended.code
        progress = guest.read(f"{remote}/{PROGRESS}", MOST_PROGRESS)
        if progress is not None:
            (folder / PROGRESS).write_bytes(progress)
        if signals:
            _end(guest, process)
            return 128 + signal.SIGTERM
        if more < LOOK:
            time.sleep(POLL)


def _relay(guest: Agent, remote: str, relayed: int, decoder: codecs.IncrementalDecoder) -> int:
    """Relay new output as printable text, as much as one look takes; its length in bytes."""
    more = guest.read(_log(remote), LOOK, relayed) or b""
    print_text(decoder.decode(more), end="")
    sys.stdout.flush()
    return len(more)


def _end(guest: Agent, process: int) -> None:
    """End the command's process group, by SIGTERM and then by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        guest.run("/bin/sh", "-c", f"kill -s {number.value} -- -{process}")
        deadline = time.monotonic() + END_PATIENCE
        while time.monotonic() < deadline:
            if guest.ended(process) is not None:
                return
            time.sleep(POLL)


def _fetch(guest: Agent, folder: Path, remote: str, brought: set[str]) -> None:
    """Copy the files that the command wrote to the folder on this machine; no subfolders.

    Raises:
        GuestLost: the guest names what is no file of a launch, so that it cannot be believed; it
            sends too much, or takes too long.
    """
    with guest.within(FETCH_PATIENCE):
        _receive(guest, folder, remote, brought)
    _do(guest, f"rm -rf {shlex.quote(remote)} {shlex.quote(_log(remote))}")


def _receive(guest: Agent, folder: Path, remote: str, brought: set[str]) -> None:
    """Write what the guest names as files of the launch into the folder on this machine."""
    line = f"cd {shlex.quote(remote)} && find . -maxdepth 1 -type f -printf '%f\\n'"
    names = guest.run("/bin/sh", "-c", line).output.split("\n")
    room = MOST_FILES
    for name in names:
        if name and not FILE.fullmatch(name):
            raise guest_agent.GuestLost(f"the guest names {name!r}, which is no file of a launch")
        if name and name not in brought:
            content = guest.read(f"{remote}/{name}", room + 1, patience=FETCH_PATIENCE)
            if content is not None:
                room -= len(content)
                if room < 0:
                    raise guest_agent.GuestLost(
                        f"the launch's files in the guest have more than {MOST_FILES:,} bytes, "
                        f"which are not copied; the last one is {name}"
                    )
                (folder / name).write_bytes(content)


def _log(remote: str) -> str:
    """The log, beside the folder because it is relayed and not fetched. The user makes it."""
    return f"/tmp/{Path(remote).name}.log"


def _do(guest: Agent, line: str) -> None:
    ended = guest.run("/bin/sh", "-c", line)
    if ended.code:
        raise guest_agent.GuestLost(f"the guest could not do {line!r}: {ended.output.strip()}")


def main() -> None:
    """Parse the words and run."""
    parser = argparse.ArgumentParser(prog="inside", description=__doc__)
    parser.add_argument("--agent", type=Path, required=True, help="the guest agent's socket")
    parser.add_argument("--folder", type=Path, required=True, help="the launch's folder")
    parser.add_argument("--root", action="store_true", help="run the command as root")
    parser.add_argument("--after", default="", help="a shell line for the guest, run as root")
    parser.add_argument("words", nargs="+")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as SIGTERM, before the guest has answered
    try:
        sys.exit(run(options.agent, options.folder, options.words, options.root, options.after))
    except ExperimentsError as error:
        print_text(error, file=sys.stderr)
        sys.exit(os.EX_UNAVAILABLE)


if __name__ == "__main__":
    main()
