"""Boots an emulated machine, waits until its guest answers, and ends it.

A machine is one process of QEMU. Its end ends all of it, and removes what the guest wrote.
"""

import contextlib
import os
import shutil
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.emulation import guest_agent, qemu, qemu_command
from experiments.emulation import guest_disk as disks
from experiments.emulation.guest_agent import Agent, GuestLost
from experiments.emulation.machine import MIB, Description
from experiments.emulation.qemu_command import Disk
from experiments.model.errors import ExperimentsError
from experiments.processes import executables, scratch, tracking
from experiments.processes.executables import Process
from experiments.processes.files import last_lines

PATIENCE = 300.0  # seconds until a guest answers; five with TCG, 22 beside two other guests
ENGINE_PATIENCE = 420.0  # until the engine in a guest answers; seven alone, 51 beside two guests
END_PATIENCE = 5.0  # seconds
POLL = 0.1  # seconds
LAST_LINES = 8  # of the console, in the message of a machine that does not boot
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # bytes; free memory would vary
ROOM = 64 * MIB  # bytes; an engine in the guest and three containers wrote 3 MiB
START_ENGINE = "/usr/local/lib/guest/start-engine"


@dataclass(frozen=True)
class Guest:
    """A booted machine.

    Attributes:
        socket: of its agent, which serves one connection at a time.
        console: file with the messages of its kernel.
        accelerator: "kvm" or "tcg".
        disk: what it was booted from.
    """

    description: Description
    disk: Disk
    accelerator: str
    socket: Path
    console: Path
    process: Process

    @contextlib.contextmanager
    def agent(self) -> Iterator[Agent]:
        """A connection to the agent.

        Raises:
            GuestLost: the guest does not answer; with the last lines of its console.
        """
        try:
            with guest_agent.connected(self.socket) as connection:
                yield connection
        except GuestLost as lost:
            raise GuestLost(f"{self.description.name}: {lost}{_last_words(self.console)}") from None

    def death(self) -> str:
        """How QEMU ended, with the last lines of the console; "" while it runs."""
        code = self.process.poll()
        return "" if code is None else f"QEMU ended with code {code};{_last_words(self.console)}"

    def start_engine(self) -> None:
        """Start the engine in the guest, unless it runs."""
        with self.agent() as connection:
            ended = connection.run(START_ENGINE, patience=ENGINE_PATIENCE)
        if ended.code:
            raise ExperimentsError(
                f"the engine in {self.description.name} does not start: {ended.output.strip()}"
            )


def refuse(description: Description, base: str) -> None:
    """Raise if the machine cannot boot, before minutes are spent on an image and a disk.

    Args:
        base: base image: "auto", "bootstrap" or an image's name.

    Raises:
        ExperimentsError: with what to do.
    """
    qemu.version()
    disks.refuse(base)
    wanted = description.memory_bytes + sum(device.given_bytes for device in description.dax)
    if wanted > MEMORY:
        raise ExperimentsError(
            f"{description.name} has {wanted // MIB} MiB of memory and this machine "
            f"{MEMORY // MIB} MiB; make its nodes smaller"
        )
    writes = Path(os.environ.get("TMPDIR", "/var/tmp"))  # QEMU keeps there what a guest writes
    try:
        free = shutil.disk_usage(writes).free
    except OSError as error:
        raise ExperimentsError(
            f"what a guest writes is kept in {writes}: {error.strerror}; set TMPDIR to a folder"
        ) from None
    if free < ROOM:
        raise ExperimentsError(
            f"what a guest writes is kept in {writes}, which has {free // MIB} MiB left and needs "
            f"{ROOM // MIB}; make room, or set TMPDIR to another folder"
        )


@contextlib.contextmanager
def booted(
    description: Description, disk: Disk, say: Callable[[str], None] = print
) -> Iterator[Guest]:
    """A booted machine for the time of the block.

    The calling thread must outlive the block: QEMU ends with that thread (PR_SET_PDEATHSIG).

    Raises:
        ExperimentsError: with what to do.
    """
    with scratch.folder(scratch.SHORT, "hbmcomm-guest-") as folder:
        accelerated = qemu.best()
        say(f"{description.name}: booting with {accelerated.upper()}")
        began = time.monotonic()
        words = _command(qemu_command.arguments(description, disk, folder, accelerated))
        log = folder / "qemu.log"
        marked = {**os.environ, tracking.MARK: tracking.new_mark()}
        process = executables.start(words, log, marked)
        try:
            places = folder / qemu_command.AGENT, folder / qemu_command.CONSOLE
            guest = Guest(description, disk, accelerated, *places, process)
            _await(guest, log)
            say(f"{description.name}: up after {time.monotonic() - began:.1f} s")
            yield guest
        finally:
            executables.end(process, END_PATIENCE)


def shell(description: Description, disk: Disk) -> int:
    """Run the machine with a shell on this terminal; QEMU's exit code."""
    with scratch.folder(scratch.SHORT, "hbmcomm-guest-") as folder, _terminal_kept():
        arguments = qemu_command.arguments(description, disk, folder, qemu.best(), shell=True)
        return subprocess.run(_command(arguments), check=False).returncode


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """Restore this terminal's settings after the block; a killed QEMU does not."""
    if not os.isatty(0):
        yield
        return
    settings = termios.tcgetattr(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSANOW, settings)


def _command(arguments: list[str]) -> list[str]:
    """QEMU's command; QEMU ends with the process that starts it."""
    until = [executables.find("setpriv") or "setpriv", "--pdeathsig=TERM", "--"]
    return [*until, qemu.program(), *arguments[1:]]


def _await(guest: Guest, log: Path) -> None:
    """Wait for the agent's first answer, or for QEMU's end."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and guest.process.poll() is None:
        with contextlib.suppress(GuestLost), guest_agent.connected(guest.socket, POLL * 10):
            return
    errors = log.read_text(encoding="utf-8", errors="replace").strip()
    what = "ended" if guest.process.poll() is not None else f"is silent for {PATIENCE:.0f} s"
    raise ExperimentsError(
        f"the emulated machine {guest.description.name} {what} while it booted: "
        f"{errors or 'QEMU printed nothing'}{_last_words(guest.console)}"
    )


def _last_words(console: Path) -> str:
    if not (lines := last_lines(console, LAST_LINES)):
        return ""
    return "".join(f"\n    {line}" for line in ["the guest's last words:", *lines])
